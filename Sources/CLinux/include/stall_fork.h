// Detects forks: a child's copies of threads, descriptors and timers are its parent's.
#pragma once
#include <stdint.h>

extern uint32_t stall_fork_count;

/// Starts counting. Idempotent.
void stall_fork_prepare(void);

/// The number of forks between the process that started counting and this one. Costs one load.
static inline uint32_t stall_fork_generation(void) { return __atomic_load_n(&stall_fork_count, __ATOMIC_RELAXED); }
