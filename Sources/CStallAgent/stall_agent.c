// The functions of stall_agent.h are in Sources/StallAgentC; this file makes the header a module that Swift can import.
#include "stall_agent.h"
