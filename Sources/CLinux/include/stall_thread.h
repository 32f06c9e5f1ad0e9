// Threads of the agent's own: outside every pool, deaf to the app's signals.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Starts a joinable thread with every signal blocked, so that the app's handlers never run on it.
/// `thread` receives the pthread_t. `name` is cut at 15 bytes. Returns 0 or the errno of pthread_create.
int stall_thread_start(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// Waits for a thread's end until `deadline_ns` (CLOCK_MONOTONIC) at the latest. False when it has not ended by then: it can be
/// waited for again.
bool stall_thread_join_until(unsigned long thread, uint64_t deadline_ns);

/// Asks the kernel to wake the calling thread on time instead of up to 50 us later.
void stall_thread_wake_on_time(void);
