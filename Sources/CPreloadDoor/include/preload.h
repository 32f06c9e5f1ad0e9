// The parts of libstallwatch-preload.so. Nothing else links them: they define what CEpollDoor defines for other programs.
#pragma once
#include "../../CEpollDoor/door.h"
#include "stall_preload.h"

/// The agent, once it runs in this process; NULL before.
const stall_preload_agent *preload_agent(void);
/// Whether this process is to be watched.
bool preload_is_active(void);
/// Loads and starts the agent on a thread of its own, once per process.
void preload_start_agent(void);
/// Waits until the agent that was started runs, or cannot be, or this time has passed. Neither allocates nor is it a
/// cancellation point.
void preload_wait_for_agent(int64_t timeout_ns);
/// Forgets all threads, in a forked child.
void preload_forget_threads(void);
