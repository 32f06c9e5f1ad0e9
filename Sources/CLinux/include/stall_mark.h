// Work that a thread marks with begin and end: the hot path of the Swift and C interfaces.
#pragma once
#include <stdint.h>

#include "stall_beacon.h"
#include "stall_clock.h"

/// The phase of marked work; StallModel's LoopPhase.marked.
#define STALL_PHASE_MARKED 7

/// One thread's marks. `depth` is confined to that thread.
typedef struct stall_mark {
    stall_beacon *_Nonnull beacon;
    uint64_t thread;  ///< the thread that may use it, by `stall_this_thread`
    uint32_t depth;
} stall_mark;

/// Distinguishes threads that live at the same time, without a system call.
static inline uint64_t stall_this_thread(void) { return (uint64_t)(uintptr_t)__builtin_thread_pointer(); }

/// Work begins; nested work belongs to the outermost. Ignored on any other thread.
static inline void stall_mark_begin(stall_mark *_Nonnull mark) {
    if (mark->thread != stall_this_thread() || mark->depth++ > 0) return;
    stall_beacon_publish_callout(mark->beacon, STALL_PHASE_MARKED);
    stall_beacon_publish_awake(mark->beacon, stall_monotonic_ns());
}
/// Work ends. Ignored on any other thread, and when nothing has begun.
static inline void stall_mark_end(stall_mark *_Nonnull mark) {
    if (mark->thread != stall_this_thread() || mark->depth == 0 || --mark->depth > 0) return;
    stall_beacon_publish(mark->beacon, STALL_LOOP_WAITING, stall_monotonic_ns());
}
