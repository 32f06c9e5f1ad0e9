#define _GNU_SOURCE
#include "door.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "stall_clock.h"
#include "stall_rest.h"

__thread stall_door *door_of_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

static pthread_key_t key;
static bool has_key;
static bool is_disabled;

static void release(stall_door *door) {
    if (__atomic_fetch_sub(&door->references, 1, __ATOMIC_ACQ_REL) != 1) return;
    stall_beacon_release(door->beacon);
    free(door);
}

// At the end of the thread: it is not expected to serve events any more.
static void leave_thread(void *context) {
    stall_door *door = context;
    if (door_of_thread == door) door_of_thread = NULL;
    stall_beacon_publish(door->beacon, STALL_LOOP_IDLE, stall_monotonic_ns());
    release(door);
}

static void make_key(void) { has_key = pthread_key_create(&key, leave_thread) == 0; }

stall_door *stall_door_open(stall_beacon *beacon) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    stall_door *door = has_key ? calloc(1, sizeof *door) : NULL;
    if (!door) return NULL;
    stall_beacon_retain(beacon);
    door->beacon = beacon;
    door->references = 1;
    if (__atomic_load_n(&is_disabled, __ATOMIC_RELAXED)) return door;
    door->references = 2;
    stall_door *before = door_of_thread;
    door_of_thread = door;
    pthread_setspecific(key, door);
    if (before) release(before);
    return door;
}

void stall_door_disable(bool disabled) { __atomic_store_n(&is_disabled, disabled, __ATOMIC_RELAXED); }

void stall_door_disable_here(void) {
    stall_door *door = door_of_thread;
    if (!door) return;
    door_of_thread = NULL;
    pthread_setspecific(key, NULL);
    stall_beacon_publish(door->beacon, STALL_LOOP_WAITING, stall_monotonic_ns());
    release(door);
}

void stall_door_close(stall_door *door) {
    __atomic_store_n(&door->is_closed, 1, __ATOMIC_RELEASE);
    release(door);
}

uint64_t stall_door_crossings(const stall_door *door) { return __atomic_load_n(&door->crossings, __ATOMIC_ACQUIRE); }

static int descriptor_at(const int *descriptors, size_t index, size_t stride) {
    return *(const int *)((const char *)descriptors + index * stride);
}

static void learn(stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride) {
    door->loop = call;
    for (size_t i = 0; i < count && door->anchor_count < DOOR_ANCHORS; i++) {
        int descriptor = descriptor_at(descriptors, i, stride);
        if (descriptor >= 0) door->anchors[door->anchor_count++] = descriptor;
    }
}

// A poll from the loop's call site is the loop's if it waits for a descriptor that the loop's first poll waited for:
// g_poll is also called for a single socket.
static bool has_anchor(const stall_door *door, const int *descriptors, size_t count, size_t stride) {
    if (door->anchor_count == 0) return true;
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < door->anchor_count; k++) {
            if (door->anchors[k] == descriptor_at(descriptors, i, stride)) return true;
        }
    }
    return false;
}

bool door_enter(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, bool is_instant,
    uintptr_t frame) {
    if (__atomic_load_n(&door->is_closed, __ATOMIC_ACQUIRE)) {
        door_of_thread = NULL;
        pthread_setspecific(key, NULL);
        leave_thread(door);
        return false;
    }
    if (door->loop.kind == 0) learn(door, call, descriptors, count, stride);
    if (door->loop.kind != call.kind || door->loop.key != call.key) return false;
    if (call.kind == DOOR_POLL && !has_anchor(door, descriptors, count, stride)) return false;
    // A signal handler that interrupts the wait is deeper in the stack. A wait that was left by longjmp is not on the
    // stack any more.
    if (door->is_inside && frame < door->frame) return false;
    door->is_inside = true;
    door->frame = frame;
    __atomic_store_n(&door->crossings, door->crossings + 1, __ATOMIC_RELEASE);
    if (is_instant) {
        stall_beacon_publish_iteration(door->beacon, stall_monotonic_ns());
    } else {
        door->weight = stall_beacon_publish_rest(door->beacon);
    }
    return true;
}

void door_leave(stall_door *door, bool is_instant) {
    door->is_inside = false;
    if (is_instant) return;
    int saved = errno;
    uint64_t now = stall_monotonic_ns();
    if (door->weight > 0 && stall_beacon_is_watched(door->beacon))
        stall_counters_add_iterations(door->beacon, door->weight);
    stall_beacon_publish_awake(door->beacon, now);
    errno = saved;
}
