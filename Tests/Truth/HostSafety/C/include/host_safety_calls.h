// Calls that may block, made in the ways that are hard on the functions which StallBlocking interposes.
#pragma once
#include <stdbool.h>

/// Puts the calling thread where blocking is forbidden. Called on a new thread, before its call.
typedef void (*host_enter)(void);

/// A short sleep; its name is on the stack.
void host_call(void);
/// The same, called by `depth` functions with a kilobyte of variables each.
void host_call_deep(int depth);
/// One call of many kinds: sleep, pipe, file, contended lock, join, process. For a child after fork.
void host_call_all(void);

/// Within a callback of dl_iterate_phdr, which holds the loader's lock.
void host_call_in_loader(void);
/// Within a stream's own write function, which fflush calls.
void host_call_in_stream(void);

/// A read that a handler of SIGALRM leaves by siglongjmp. False if it was not left.
bool host_jump_out_of_read(void);
/// The same of short sleeps, `ns` after their beginning: also while the call is noted, or between calls.
void host_jump_out_after(long ns);

/// A kind of call that pthread_cancel ends; NULL behind the last.
const char *_Nullable host_cancellable(int index);
/// Cancels a thread that is in the call. Whether it ended by that, with its cleanup handlers.
bool host_cancel_in_call(int index, host_enter _Nullable enter);
/// Makes the call on a thread whose cancellation is pending, or that the call need not wait on. Whether it ended by that.
bool host_cancel_before_call(int index, host_enter _Nullable enter);

/// A signal each millisecond on the calling thread, whose handler sleeps, reads, writes, posts and locks. With
/// `on_alternate_stack` it has a stack of its own.
void host_storm_begin(bool on_alternate_stack);
/// Ends that. Returns how often the handler ran.
int host_storm_end(void);
/// Sleeps, reads, writes, waits and locks. Returns how many of the calls that succeeded changed errno.
int host_calls_that_change_errno(void);
/// errno after a call, where it was `before`.
int host_errno_after(int before, void (*_Nonnull call)(void));

/// Threads one after another that end within a callout, after a call. At their end destructors of thread-local values make
/// calls. Returns how many of these were made.
int host_end_threads(int count, host_enter _Nullable enter);

/// A thread with the smallest stack makes a call. False if there was none.
bool host_call_on_small_stack(host_enter _Nonnull enter);

/// Makes a process by `how` (`vfork`, `spawn`, `fork`, `system`, `popen`), which makes another program's calls. False if it failed.
bool host_make_process(const char *_Nonnull how);
