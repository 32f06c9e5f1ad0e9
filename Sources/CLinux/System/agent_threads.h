// The ids of the agent's threads, for the handler of a fatal signal.
#pragma once
#include <stdint.h>

/// Threads beyond these are not in the list.
enum { STALL_AGENT_THREAD_COUNT = 1024 };

/// The thread at an index of the list, if it is one of this process (getpid); else 0. From a signal handler, too.
__attribute__((visibility("hidden"))) int32_t stall_agent_thread(int place, int32_t process);
