// StallAgentC implements the functions of stall_agent.h; this file makes the header a module that Swift can import.
#include "stall_agent.h"
