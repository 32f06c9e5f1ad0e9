// Threads of the agent: outside of all pools, with the app's signals blocked.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Starts a joinable thread that blocks every signal except those of faults (SIGSEGV and the like, SIGABRT, SIGSYS):
/// handlers for asynchronous signals do not run on it, and the app's crash handler sees a crash there. `stack_bytes`
/// excludes thread-local variables, for which room is added. `thread` receives the pthread_t. `name` is truncated to 15
/// bytes. Returns 0 or the errno of pthread_create.
///
/// Of its creator's scheduling it inherits as little as the kernel allows: it has the ordinary class, and the CPUs and
/// the nice value that the process was started with.
int stall_thread_start(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// The same for a thread that must run while its creator does: one step above a real-time creator, or one nice value
/// below it, where the kernel allows that.
int stall_thread_start_ahead(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// The same for a thread with its creator's scheduling.
int stall_thread_start_alike(
    unsigned long *_Nonnull thread, const char *_Nonnull name, size_t stack_bytes,
    void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable context);

/// Waits for a thread's end, at most until `deadline_ns` (CLOCK_MONOTONIC). False if it has not ended by then: it can
/// be joined later.
bool stall_thread_join_until(unsigned long thread, uint64_t deadline_ns);

/// Minimizes the calling thread's timer slack: by default the kernel may wake it up to 50 us late.
void stall_thread_wake_on_time(void);

/// The kernel kills this process when its parent's thread that started it ends. For a helper of a command.
__attribute__((visibility("hidden"))) void stall_end_with_parent(void);

/// Names the calling thread; truncated to 15 bytes.
void stall_thread_set_name(const char *_Nonnull name);

/// The calling thread's gettid value, without a system call after the first time.
int32_t stall_thread_id(void);
