// Detects forks: a child's copies of threads, descriptors and timers are its parent's. And defers them: a lock that
// another thread holds at the fork is held in the child forever.
#pragma once
#include <stdbool.h>
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

/// From here to `stall_fork_end_work`, forks are deferred also while the thread holds no lock of those: the Swift runtime
/// has locks of its own, which it takes for the first use of a type. Where such a thread may wait, in the kernel or for the
/// app, it must not defer forks: it begins a wait, if it does not hold a lock, and ends the wait that it began. In other
/// threads, and between, these do nothing.
void stall_fork_begin_work(void);
void stall_fork_end_work(void);
bool stall_fork_begin_wait(void);
void stall_fork_end_wait(bool began);

/// As `stall_fork_begin_wait`, for calls of a library that has locks of its own: a fork waits for its end, 20 ms at most.
bool stall_fork_enter_library(void);
void stall_fork_leave_library(bool entered);

/// Waits, as every fork does, before a handler that was registered behind `stall_fork_prepare` takes locks that other
/// threads need meanwhile. Called by that handler, on the thread that forks.
void stall_fork_begin(void);

/// Lets a fork that waits for this thread's work happen now. Costs one load if there is none.
void stall_fork_let_pass(void);

/// How many forks have waited in vain since the last call.
uint32_t stall_fork_take_vain(void);
