// The end of a busy span, usually without reading the precise clock, which is most of what watching costs.
//
// CLOCK_MONOTONIC_COARSE shows at a tenth of the cost whether the span reached a tick of the kernel (1 to 10 ms). One that
// did is measured exactly. Of the shorter ones, which are no stalls, one in STALL_SPAN_SAMPLE is measured and stands for
// all of them: busy times and lengths are estimates there. Begins are always exact.
#pragma once
#include "stall_beacon.h"
#include "stall_clock.h"

#define STALL_SPAN_SAMPLE 8

/// Publishes WAITING. Returns how many spans the last one stands for; 0 if it was not measured.
static inline uint32_t stall_beacon_publish_rest(stall_beacon *_Nonnull beacon) {
    const uint64_t word = __atomic_load_n(&beacon->word, __ATOMIC_RELAXED), began = word & STALL_BEACON_TIME_MASK;
    const bool is_short = word >> 56 == STALL_LOOP_BUSY
        && (stall_monotonic_coarse_ns() & STALL_BEACON_TIME_MASK) <= began
        && __atomic_load_n(&beacon->alarm, __ATOMIC_RELAXED) == 0;
    const bool is_watched = stall_beacon_is_watched(beacon);
    if (is_short) {
        const uint32_t count = beacon->counters.short_spans + 1;
        beacon->counters.short_spans = count;
        if (count % STALL_SPAN_SAMPLE != 0) {
            if (is_watched) STALL_COUNTER_ADD(beacon->counters.rests, 1);
            __atomic_store_n(&beacon->word, stall_beacon_pack(STALL_LOOP_WAITING, began), __ATOMIC_RELEASE);
            return 0;
        }
    }
    const uint64_t now = stall_monotonic_ns();
    stall_beacon_publish(beacon, STALL_LOOP_WAITING, now);
    if (!is_short) return 1;
    const uint64_t span = (now - began) & STALL_BEACON_TIME_MASK;
    if (is_watched) STALL_COUNTER_ADD(beacon->counters.busy_ns, (STALL_SPAN_SAMPLE - 1) * span);
    return STALL_SPAN_SAMPLE;
}
