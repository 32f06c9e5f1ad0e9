// Detects forks: a child's copies of threads, descriptors and timers are its parent's. And defers them: a lock that
// another thread holds at the fork is held in the child forever.
#pragma once
#include <stdint.h>

extern uint32_t stall_fork_count;

/// Starts counting and deferring. Idempotent.
void stall_fork_prepare(void);

/// The number of forks between the process that started counting and this one. Costs one load.
static inline uint32_t stall_fork_generation(void) { return __atomic_load_n(&stall_fork_count, __ATOMIC_RELAXED); }

/// From here to `stall_fork_allow`, the calling thread may hold a lock that a child would inherit: the agent's, the
/// dynamic linker's. A fork by another thread waits for that, 100 ms at most; one that has begun is waited for, a
/// second at most. For microseconds, without callouts. Calls nest. Neither allocates; errno is preserved.
void stall_fork_defer(void);
void stall_fork_allow(void);

/// How many forks have waited in vain since the last call.
uint32_t stall_fork_take_vain(void);
