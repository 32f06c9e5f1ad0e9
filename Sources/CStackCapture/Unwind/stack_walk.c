// Shared by every way of taking a step, for rare cases: stack outside the copy, and the clock.
#include "stack_walk.h"

#include <time.h>

#include "stall_memory.h"

bool stall_walk_has_passed_deadline(walk *walk) {
    stall_unwinder *unwinder = walk->unwinder;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return unwinder->is_overdue = now_ns >= unwinder->deadline_ns;
}

// Stack outside the copy is reached through an alternate signal stack, or past the copy's capacity. Memory behind a
// signal frame is at rest while the handler runs; whether it still does is not known unless the copy is live.
bool stall_walk_read_far_word(walk *walk, uint64_t address, uint64_t *value) {
    if (!walk->copy->is_live) {
        if (walk->signal_frames == 0) return false;
        walk->is_guessed = true;
    }
    stall_unwinder *unwinder = walk->unwinder;
    if (!stall_walk_holds(unwinder->far_base, unwinder->far_length, address)) {
        unwinder->far_base = address;
        unwinder->far_length = stall_read_memory(unwinder->far, address, FAR_SIZE);
        if (unwinder->far_length < 8) return false;
    }
    memcpy(value, unwinder->far + (address - unwinder->far_base), 8);
    return true;
}
