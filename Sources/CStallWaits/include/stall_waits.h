// The function of the agent's library that libstallwaits calls.
#pragma once
#include "stall_agent.h"

/// Opens the calling thread's door, and watches its loop by it. Implemented by StallAgentC.
stall_watched_waits *stall_agent_open_door(
    stall_agent *agent, const char *name, uint32_t threshold_ms);
