// The floor: the least that a loop on epoll can do, in C, with nodes owned by the caller. Not a library; benchmarks
// compare with it. Each function does `count` operations and returns the elapsed nanoseconds.
#pragma once
#include <stdint.h>

/// A task posts itself; each iteration runs it and polls the kernel.
uint64_t minimal_iterate(uint64_t count);
/// Each iteration waits for an eventfd that it has written itself, and reads it.
uint64_t minimal_wake(uint64_t count);
/// `producers` threads post `count` tasks each through a mutex, with an eventfd write when the loop sleeps.
uint64_t minimal_post_locked(uint64_t count, int producers);
/// The same through a lock-free stack.
uint64_t minimal_post_lock_free(uint64_t count, int producers);

/// A 4-ary heap with `size` timers far away. Each operation restores that size.
typedef struct minimal_timers minimal_timers;
minimal_timers *minimal_timers_create(uint32_t size);
void minimal_timers_destroy(minimal_timers *timers);
/// Fills an empty heap with `size` timers at random instants.
uint64_t minimal_timers_insert(uint32_t size);
/// Cancels all timers of a heap of `size`, in random order.
uint64_t minimal_timers_cancel(uint32_t size);
/// Fires all timers of a heap of `size`, in order.
uint64_t minimal_timers_fire(uint32_t size);
/// Adds a timer to a heap of `size` and cancels it, `count` times.
uint64_t minimal_timers_churn(uint32_t size, uint64_t count);
/// Re-dates random timers of a heap of `size`, `count` times.
uint64_t minimal_timers_redate(uint32_t size, uint64_t count);

/// `active` eventfds are written, then served and read, until `count` events were served.
uint64_t minimal_descriptors(int active, uint64_t count, int events_per_wait);

/// A non-blocking eventfd.
int minimal_eventfd(void);

/// Calls of malloc and its like on this thread so far.
uint64_t minimal_allocations(void);
