// Scopes in which the app declared blocking as meant (`StallMonitor.expected`): where a thread or a task is in one now.
// Their intervals, which reports are judged by, are in StallAgent/Context/ExpectedScopes.swift.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_clock.h"

/// Maximum number of tasks in such scopes at the same time.
#define STALL_EXPECTED_TASK_LIMIT 64

/// How many such scopes the calling thread is in, those of tasks left out. Swift cannot read thread-local variables: use
/// the functions below.
extern __thread uint32_t stall_expected_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// When the outermost of them ends to count, in CLOCK_MONOTONIC.
extern __thread uint64_t stall_expected_until_ns __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void stall_expected_enter(uint64_t until_ns) {
    if (stall_expected_depth++ == 0) stall_expected_until_ns = until_ns;
}
static inline void stall_expected_leave(void) { stall_expected_depth--; }
/// Whether the calling thread is in a scope that began on it, within its limit.
static inline bool stall_expected_is_thread(void) {
    return stall_expected_depth > 0 && stall_monotonic_ns() < stall_expected_until_ns;
}

/// Notes that the task, by its address, is in a scope: one may suspend, and its thread then runs other tasks. False if
/// that was noted before, or the table is full; then `stall_expected_remove_task` must not be called. Call both in the
/// task itself.
bool stall_expected_add_task(uint64_t task, uint64_t until_ns);
void stall_expected_remove_task(uint64_t task);
/// Whether the task is in a scope, within its limit. Any thread; neither waits nor allocates. Costs one load while no task is.
bool stall_expected_is_task(uint64_t task);
