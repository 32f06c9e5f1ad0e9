// Threads of the agent's own: outside every pool, deaf to the app's signals.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// Starts a joinable thread with every signal blocked, so that the app's handlers never run on it.
/// `thread` receives the pthread_t. `name` is cut at 15 bytes. Returns 0 or the errno of pthread_create.
int stall_thread_start(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// Asks the kernel to wake the calling thread on time instead of up to 50 us later.
void stall_thread_wake_on_time(void);
