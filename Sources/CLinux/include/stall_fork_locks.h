// Locks of a library that a fork holds, so that the child finds none of them taken by a thread that it does not have.
#pragma once
#include <stdbool.h>
#include <stddef.h>

/// Every later fork takes these locks before it begins, 100 ms at most for all, and releases them in both processes.
///
/// - Parameters:
///   - locks: At most 16, in the order in which the library nests them. Copied.
///   - try_lock: Takes one without waiting; 0 if it has.
/// Call it once in a process. Forks are deferred meanwhile.
void stall_fork_hold(
    void *const *locks, size_t count, int (*try_lock)(void *lock), void (*unlock)(void *lock));

/// Whether this process is a forked child in which nothing releases one of them.
bool stall_fork_left_lock_taken(void);
