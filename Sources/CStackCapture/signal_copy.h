// A running thread copies its own stack, in a SIGPROF handler. See signal_copy.c for the protocol.
#pragma once
#include "architecture.h"

typedef enum { SIGNAL_COPIED, SIGNAL_UNAVAILABLE, SIGNAL_THREAD_ENDED, SIGNAL_TIMED_OUT } signal_result;

/// Makes SIGPROF usable as `use` allows, once for the process. Returns 0 or an errno.
int stall_signal_copy_prepare(uint32_t stack_capacity, stall_signal_use use);
/// Whether SIGPROF goes to our handler: the app may have taken it since.
bool stall_signal_copy_is_available(void);
/// Asks `thread` for its registers and stack, until `deadline_ns` (CLOCK_MONOTONIC). After SIGNAL_COPIED the
/// copy is the caller's until it calls stall_signal_copy_release, which wipes it.
signal_result stall_signal_copy_request(
    const stall_thread *thread, uint64_t deadline_ns, stall_registers *registers, stall_stack_copy *copy);
void stall_signal_copy_release(void);
