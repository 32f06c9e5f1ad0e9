// Threads of the agent's own: outside every pool, deaf to the signals that are sent to the app.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Starts a joinable thread that blocks every signal but those of faults (SIGSEGV and its like, SIGABRT, SIGSYS): no
/// handler for a signal that is sent runs on it, and the app's crash handler sees a crash there. `stack_bytes` are the
/// thread's own: room for thread-local variables is added. `thread` receives the pthread_t. `name` is cut at 15 bytes.
/// Returns 0 or the errno of pthread_create.
int stall_thread_start(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// Waits for a thread's end until `deadline_ns` (CLOCK_MONOTONIC) at the latest. False when it has not ended by then:
/// it can be waited for again.
bool stall_thread_join_until(unsigned long thread, uint64_t deadline_ns);

/// Asks the kernel to wake the calling thread on time instead of up to 50 us later.
void stall_thread_wake_on_time(void);
