// Has this process been forked? What a child inherits of threads, descriptors and timers is its parent's.
#pragma once
#include <stdint.h>

extern uint32_t stall_fork_count;

/// Begins to count. Once is enough; more does nothing.
void stall_fork_prepare(void);

/// How many forks lie between the process that began to count and this one. A load.
static inline uint32_t stall_fork_generation(void) { return __atomic_load_n(&stall_fork_count, __ATOMIC_RELAXED); }

/// Closes a descriptor that the child inherited, if it still is what it was: `kind` is its link in /proc/self/fd, such
/// as `anon_inode:[eventpoll]`. The number may be the app's by now.
void stall_fork_close(int descriptor, const char *_Nonnull kind);
