// How the process ends, in the records of all of its monitors.
#pragma once
#include <stdint.h>

/// Writes STALL_PROCESS_* and the time. From a signal handler, too: see stall_system_call.h.
__attribute__((visibility("hidden"))) void stall_process_note_ending(uint64_t ending);
