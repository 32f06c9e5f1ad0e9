#define _GNU_SOURCE
#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stall_clock.h"
#include "stall_current.h"

__thread stall_door *door_of_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

stall_door *(*const door_find)(void) = NULL;

static pthread_key_t key;
static bool has_key;
static bool is_disabled;

static void release(stall_door *door) {
    if (__atomic_fetch_sub(&door->references, 1, __ATOMIC_ACQ_REL) != 1) return;
    stall_beacon_release(door->beacon);
    free(door);
}

// The thread is not expected to serve events any more: at its end, or because no watcher is left.
static void leave_thread(void *context) {
    stall_door *door = context;
    if (door_of_thread == door) door_of_thread = NULL;
    stall_beacon_publish(door->beacon, STALL_LOOP_IDLE, stall_monotonic_ns());
    release(door);
}

static void make_key(void) { has_key = pthread_key_create(&key, leave_thread) == 0; }

static stall_door *make_door(uint64_t calls) {
    stall_door *door = calloc(1, sizeof *door);
    stall_beacon *beacon = door ? stall_beacon_create() : NULL;
    if (!beacon) {
        free(door);
        return NULL;
    }
    *door = (stall_door){.beacon = beacon, .references = 1, .calls = calls};
    door->is_disabled = __atomic_load_n(&is_disabled, __ATOMIC_RELAXED);
    return door;
}

// Only its thread adds a watcher, and only while another one is left: a loop without a watcher may be another one by
// now.
static bool add_watcher(stall_door *door) {
    uint32_t count = __atomic_load_n(&door->watchers, __ATOMIC_ACQUIRE);
    while (count > 0) {
        if (__atomic_compare_exchange_n(
                &door->watchers, &count, count + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_fetch_add(&door->references, 1, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

stall_door *stall_door_open(uint64_t calls) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    stall_door *before = door_of_thread;
    if (before && add_watcher(before)) {
        stall_current_keep(before->beacon);
        return before;
    }
    stall_door *door = has_key ? make_door(calls) : NULL;
    if (!door) return NULL;
    door->watchers = 1;
    door->references = 2;
    if (before) leave_thread(before);
    door_of_thread = door;
    pthread_setspecific(key, door);
    stall_current_keep(door->beacon);
    return door;
}

stall_beacon *stall_door_beacon(const stall_door *door) { return door->beacon; }

void stall_door_disable(bool disabled) { __atomic_store_n(&is_disabled, disabled, __ATOMIC_RELAXED); }

void stall_door_disable_here(void) {
    stall_door *door = door_of_thread;
    if (!door) return;
    door->is_disabled = true;
    stall_beacon_publish(door->beacon, STALL_LOOP_WAITING, stall_monotonic_ns());
}

void stall_door_close(stall_door *door) {
    __atomic_fetch_sub(&door->watchers, 1, __ATOMIC_ACQ_REL);
    release(door);
}

uint64_t stall_door_crossings(const stall_door *door) { return __atomic_load_n(&door->crossings, __ATOMIC_ACQUIRE); }

static int descriptor_at(const int *descriptors, size_t index, size_t stride) {
    return *(const int *)((const char *)descriptors + index * stride);
}

static void learn(door_identity call, const int *descriptors, size_t count, size_t stride, stall_door *door) {
    door->loop = call;
    door->other_count = 0;
    door->anchor_count = 0;
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

static bool is_epoll(int descriptor) {
    static const char kind[] = "anon_inode:[eventpoll]";
    char path[32], target[sizeof kind];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const ssize_t count = readlink(path, target, sizeof target);
    // Without /proc, an open descriptor counts as the set.
    return count < 0 || ((size_t)count == strlen(kind) && memcmp(target, kind, strlen(kind)) == 0);
}

static bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

// A loop that left its old descriptors open waits for the new ones again and again from exactly where it waited before.
// A helper may do so as well, for a synchronous request on behalf of one of the loop's callouts, but less often.
enum { ENOUGH_WAITS = 3 };

static bool waits_often(stall_door *door, door_identity call, door_place place) {
    const bool is_place = door->place.frame == place.frame && door->place.caller == place.caller;
    const bool is_same = door->other.kind == call.kind && door->other.key == call.key;
    door->other = call;
    door->other_count = is_place ? (is_same ? door->other_count + 1 : 1) : 0;
    return door->other_count >= ENOUGH_WAITS;
}

// Loops replace what they wait for: after a fork, after an error, when they are initialized again.
static bool has_replaced(stall_door *door, door_identity call, door_place place) {
    if (door->loop.kind != call.kind) return false;
    if (waits_often(door, call, place)) return true;
    if (call.kind == DOOR_EPOLL) return !is_open((int)door->loop.key) || !is_epoll((int)door->loop.key);
    if (call.kind != DOOR_POLL || door->loop.key != call.key) return false;
    for (int i = 0; i < door->anchor_count; i++) {
        if (is_open(door->anchors[i])) return false;
    }
    return true;
}

static bool is_loops(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, door_place place) {
    if (door->loop.kind == call.kind && door->loop.key == call.key
        && (call.kind != DOOR_POLL || has_anchor(door, descriptors, count, stride))) {
        door->other_count = 0;
        return true;
    }
    const int saved = errno;
    const bool is_first = door->loop.kind == 0 && (door->calls == STALL_DOOR_ANY || door->calls == call.kind);
    const bool is_new = is_first || has_replaced(door, call, place);
    errno = saved;
    if (is_new) learn(call, descriptors, count, stride, door);
    return is_new;
}

// A signal handler that interrupts the wait is deeper in the stack, or on the alternate one. A wait that was left by
// longjmp is not on the stack any more: the loop continues above it or, where it makes its own wait again and again, below.
static bool interrupts_wait(stall_door *door, door_identity call, door_place place) {
    stack_t alternate;
    if (!door->is_inside) return false;
    const bool is_inner = place.frame < door->place.frame
        || (sigaltstack(NULL, &alternate) == 0 && alternate.ss_flags & SS_ONSTACK);
    if (!is_inner || door->loop.kind != call.kind || door->loop.key != call.key) return is_inner;
    const bool is_same = door->inner.frame == place.frame && door->inner.caller == place.caller;
    door->inner = place;
    door->inner_count = is_same ? door->inner_count + 1 : 1;
    return door->inner_count < ENOUGH_WAITS;
}

bool door_enter(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, bool is_instant,
    door_place place) {
    if (__atomic_load_n(&door->watchers, __ATOMIC_ACQUIRE) == 0) {
        pthread_setspecific(key, NULL);
        leave_thread(door);
        return false;
    }
    if (door->is_disabled) return false;
    if (interrupts_wait(door, call, place)) return false;
    if (!is_loops(door, call, descriptors, count, stride, place)) return false;
    door_rest(door, is_instant, place);
    return true;
}

void door_leave(stall_door *door, bool is_instant) {
    const int saved = errno;
    door_wake(door, is_instant);
    errno = saved;
}
