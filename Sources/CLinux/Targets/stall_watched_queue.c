#include "stall_watched_queue.h"

#include <unistd.h>

#include "stall_clock.h"
#include "stall_queue.h"

// dispatch_get_main_queue() is this variable's address.
extern struct dispatch_queue_static_s _dispatch_main_q __attribute__((weak));
extern const char *dispatch_queue_get_label(const void *queue) __attribute__((weak));

static struct {
    const void *queue;  // NULL: free
    const void *watch;
    uint64_t label;
    uint8_t phase;
    bool is_taken;
} entries[STALL_WATCHED_QUEUE_LIMIT];
static uint32_t highest;  // entries in use so far

// FNV-1a of the label's text.
static uint64_t label_of(const void *queue) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *label = dispatch_queue_get_label ? dispatch_queue_get_label(queue) : NULL;
    for (; label && *label; label++) hash = (hash ^ (uint8_t)*label) * UINT64_C(0x100000001b3);
    return hash;
}

bool stall_watched_queue_add(const void *queue, const void *watch, uint8_t phase) {
    for (uint32_t i = 0; i < STALL_WATCHED_QUEUE_LIMIT; i++) {
        if (__atomic_exchange_n(&entries[i].is_taken, true, __ATOMIC_ACQ_REL)) continue;
        __atomic_store_n(&entries[i].watch, watch, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].label, label_of(queue), __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].phase, phase, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].queue, queue, __ATOMIC_RELEASE);
        uint32_t before = __atomic_load_n(&highest, __ATOMIC_RELAXED);
        while (before <= i && !__atomic_compare_exchange_n(
                                  &highest, &before, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
        return true;
    }
    return false;
}

void stall_watched_queue_remove(const void *watch) {
    for (uint32_t i = 0; i < STALL_WATCHED_QUEUE_LIMIT; i++) {
        if (__atomic_load_n(&entries[i].watch, __ATOMIC_RELAXED) != watch) continue;
        __atomic_store_n(&entries[i].queue, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].watch, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].is_taken, false, __ATOMIC_RELEASE);
    }
}

static bool is_main_thread(void) { return stall_gettid() == getpid(); }

stall_watched_queue stall_watched_queue_current(void) {
    const uint32_t count = __atomic_load_n(&highest, __ATOMIC_ACQUIRE);
    const void *current = count > 0 ? stall_current_queue() : NULL;
    for (uint32_t i = 0; current && i < count; i++) {
        if (__atomic_load_n(&entries[i].queue, __ATOMIC_ACQUIRE) != current) continue;
        if (current == &_dispatch_main_q && is_main_thread()) break;
        if (__atomic_load_n(&entries[i].label, __ATOMIC_RELAXED) != label_of(current)) continue;
        return (stall_watched_queue){current, __atomic_load_n(&entries[i].phase, __ATOMIC_RELAXED)};
    }
    return (stall_watched_queue){0};
}
