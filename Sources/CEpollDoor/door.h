// A thread's door, as the interposed functions use it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_clock.h"
#include "stall_door.h"
#include "stall_rest.h"

/// Identifies a wait, to distinguish the loop's own wait from others.
typedef struct {
    uint64_t kind;  ///< DOOR_EPOLL, DOOR_POLL, DOOR_SELECT, DOOR_TOLD; 0: no call yet
    uint64_t key;   ///< the epoll descriptor, or the call site of poll or select
} door_identity;

/// Where a thread calls a wait function. A loop does so again and again with the same frame; what waits inside of one of
/// its callouts is deeper in the stack.
typedef struct {
    uintptr_t frame;   ///< the frame address
    uint64_t caller;   ///< the return address
} door_place;

enum { DOOR_EPOLL = STALL_DOOR_EPOLL, DOOR_POLL, DOOR_SELECT, DOOR_TOLD = STALL_DOOR_TOLD, DOOR_ANCHORS = 16 };

struct stall_door {
    stall_beacon *beacon;
    uint64_t crossings;
    uint32_t references;
    uint32_t watchers;
    // The rest is confined to the thread itself.
    uint64_t calls;    ///< STALL_DOOR_*
    bool is_disabled;  ///< for tests: it observes nothing
    door_identity loop;
    int anchors[DOOR_ANCHORS];  ///< descriptors of the loop's first poll
    int anchor_count;
    door_identity other;  ///< of the last waits from the loop's place, if they were for something else
    int other_count;
    bool is_inside;
    uint32_t weight;  ///< how many iterations the last one stands for
    door_place place;  ///< of the loop's last wait
    door_place inner;  ///< of the last wait below it
    int inner_count;   ///< how often that came, one after another
};

/// The calling thread's door; NULL for nearly all threads.
extern __thread stall_door *door_of_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// Finds the door of a thread that has none: in the preloaded object, for which any thread may turn out to be a loop.
/// Elsewhere NULL. A variable, because gold gives weak functions of position-independent programs wrong addresses.
extern stall_door *(*const door_find)(void) __attribute__((visibility("hidden")));

/// Publishes that the loop begins to wait, and that its wait is over.
static inline void door_rest(stall_door *door, bool is_instant, door_place place) {
    door->is_inside = true;
    door->inner_count = 0;
    door->place = place;
    __atomic_store_n(&door->crossings, door->crossings + 1, __ATOMIC_RELEASE);
    if (is_instant) {
        stall_beacon_publish_iteration(door->beacon, stall_monotonic_ns());
    } else {
        door->weight = stall_beacon_publish_rest(door->beacon);
    }
}
static inline void door_wake(stall_door *door, bool is_instant) {
    door->is_inside = false;
    if (is_instant) return;
    const uint64_t now = stall_monotonic_ns();
    if (door->weight > 0 && stall_beacon_is_watched(door->beacon))
        stall_counters_add_iterations(door->beacon, door->weight);
    stall_beacon_publish_awake(door->beacon, now);
}

/// The loop begins to wait. False if this is not its wait: then nothing is published, and `door_leave` must not be
/// called. `descriptors` are those of a poll, `stride` bytes apart.
bool door_enter(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, bool is_instant,
    door_place place) __attribute__((visibility("hidden")));
/// The loop's wait is over. Preserves errno.
void door_leave(stall_door *door, bool is_instant) __attribute__((visibility("hidden")));
