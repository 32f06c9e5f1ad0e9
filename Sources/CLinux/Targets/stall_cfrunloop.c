#define _GNU_SOURCE
#include "stall_cfrunloop.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stall_clock.h"
#include "stall_current.h"

// CoreFoundation's declarations, reduced to what is called; its headers come only with the toolchain.
typedef const void *CFTypeRef;
typedef long CFIndex;
typedef unsigned long CFOptionFlags;
typedef uint8_t Boolean;
typedef struct {
    CFIndex version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    CFTypeRef (*copy_description)(const void *info);
} CFRunLoopObserverContext;
typedef void (*CFRunLoopObserverCallBack)(CFTypeRef observer, CFOptionFlags activity, void *info);

enum {
    ENTRY = 1 << 0,
    BEFORE_TIMERS = 1 << 1,
    BEFORE_WAITING = 1 << 5,
    AFTER_WAITING = 1 << 6,
    EXIT = 1 << 7,
    UTF8 = 0x08000100,
    MODE_CAPACITY = 64,
};

#define WEAK __attribute__((weak))
extern const CFTypeRef kCFRunLoopCommonModes WEAK;
extern CFTypeRef CFRunLoopGetCurrent(void) WEAK;
extern CFTypeRef CFRunLoopGetMain(void) WEAK;
extern void CFRunLoopWakeUp(CFTypeRef loop) WEAK;
extern Boolean CFRunLoopIsWaiting(CFTypeRef loop) WEAK;
extern CFTypeRef CFRunLoopCopyCurrentMode(CFTypeRef loop) WEAK;
extern CFTypeRef CFRunLoopCopyAllModes(CFTypeRef loop) WEAK;
extern CFTypeRef CFRunLoopObserverCreate(
    CFTypeRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
    CFRunLoopObserverCallBack callback, CFRunLoopObserverContext *context) WEAK;
extern void CFRunLoopAddObserver(CFTypeRef loop, CFTypeRef observer, CFTypeRef mode) WEAK;
extern Boolean CFRunLoopContainsObserver(CFTypeRef loop, CFTypeRef observer, CFTypeRef mode) WEAK;
extern void CFRunLoopRemoveObserver(CFTypeRef loop, CFTypeRef observer, CFTypeRef mode) WEAK;
extern CFIndex CFArrayGetCount(CFTypeRef array) WEAK;
extern const void *CFArrayGetValueAtIndex(CFTypeRef array, CFIndex index) WEAK;
extern Boolean CFStringGetCString(CFTypeRef string, char *text, CFIndex capacity, uint32_t encoding) WEAK;
extern CFTypeRef CFRetain(CFTypeRef object) WEAK;
extern void CFRelease(CFTypeRef object) WEAK;

struct stall_foreign_loop {
    uint32_t references;  // the watcher's and the observer's
    CFTypeRef loop;
    CFTypeRef observer;
    stall_beacon *beacon;
    uint32_t depth;       // nesting depth of runs; atomic, because a correction counts an entry that no observer saw
};

bool stall_foreign_loop_is_available(void) {
    return &kCFRunLoopCommonModes && CFRunLoopGetCurrent && CFRunLoopGetMain && CFRunLoopWakeUp && CFRunLoopIsWaiting
        && CFRunLoopCopyCurrentMode && CFRunLoopCopyAllModes && CFRunLoopObserverCreate && CFRunLoopAddObserver
        && CFRunLoopContainsObserver && CFRunLoopRemoveObserver && CFArrayGetCount && CFArrayGetValueAtIndex
        && CFStringGetCString && CFRetain && CFRelease;
}

static const void *retain(const void *info) {
    stall_foreign_loop *loop = (stall_foreign_loop *)info;
    __atomic_fetch_add(&loop->references, 1, __ATOMIC_RELAXED);
    return info;
}

// The observer may outlive the watch, and the watch may outlive the loop's thread.
static void release(const void *info) {
    stall_foreign_loop *loop = (stall_foreign_loop *)info;
    if (__atomic_fetch_sub(&loop->references, 1, __ATOMIC_ACQ_REL) != 1) return;
    stall_beacon_release(loop->beacon);
    free(loop);
}

// Returns whether there is an outer run. An observer that was added during a run may see its exit without its entry.
static bool leave_run(stall_foreign_loop *loop) {
    uint32_t depth = __atomic_load_n(&loop->depth, __ATOMIC_RELAXED);
    while (depth > 0) {
        if (__atomic_compare_exchange_n(&loop->depth, &depth, depth - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return depth > 1;
    }
    return false;
}

// The activities and their order: `E (T S W A)* X`. An iteration that polls has no W and A, so T counts as progress
// too. The end of a nested run restarts the outer callout's time.
static void observe(CFTypeRef observer, CFOptionFlags activity, void *info) {
    (void)observer;
    stall_foreign_loop *loop = info;
    if (!loop) return;  // cleared by CoreFoundation when the observer is invalidated: see `detach`
    stall_beacon *beacon = loop->beacon;
    uint64_t now = stall_monotonic_ns();
    switch (activity) {
    case ENTRY:
        __atomic_fetch_add(&loop->depth, 1, __ATOMIC_RELAXED);
        stall_beacon_publish_awake(beacon, now);
        break;
    case AFTER_WAITING:
        stall_beacon_publish_awake(beacon, now);
        break;
    case BEFORE_TIMERS:
        stall_beacon_publish_iteration(beacon, now);
        break;
    case BEFORE_WAITING:
        stall_beacon_publish(beacon, STALL_LOOP_WAITING, now);
        break;
    case EXIT:
        stall_beacon_publish(beacon, leave_run(loop) ? STALL_LOOP_BUSY : STALL_LOOP_IDLE, now);
        break;
    default:
        break;
    }
}

stall_foreign_loop *stall_foreign_loop_attach(void) {
    if (!stall_foreign_loop_is_available()) return NULL;
    stall_foreign_loop *loop = calloc(1, sizeof *loop);
    stall_beacon *beacon = stall_beacon_create();
    if (!loop || !beacon) {
        free(loop);
        if (beacon) stall_beacon_release(beacon);
        return NULL;
    }
    loop->references = 1;
    loop->beacon = beacon;
    loop->loop = CFRetain(CFRunLoopGetCurrent());
    stall_beacon_publish_thread(beacon, stall_gettid());
    stall_current_keep(beacon);
    CFRunLoopObserverContext context = {.info = loop, .retain = retain, .release = release};
    loop->observer = CFRunLoopObserverCreate(
        NULL, ENTRY | BEFORE_TIMERS | BEFORE_WAITING | AFTER_WAITING | EXIT, true, 0, observe, &context);
    CFTypeRef running = CFRunLoopCopyCurrentMode(loop->loop);
    if (running) {  // attached in a callout: its run continues
        loop->depth = 1;
        stall_beacon_publish(beacon, STALL_LOOP_BUSY, stall_monotonic_ns());
        CFRelease(running);
    }
    CFRunLoopAddObserver(loop->loop, loop->observer, kCFRunLoopCommonModes);
    CFTypeRef modes = CFRunLoopCopyAllModes(loop->loop);
    for (CFIndex index = 0; modes && index < CFArrayGetCount(modes); index++) {
        CFRunLoopAddObserver(loop->loop, loop->observer, CFArrayGetValueAtIndex(modes, index));
    }
    if (modes) CFRelease(modes);
    return loop;
}

// The observer is removed from the loop, never invalidated. CoreFoundation calls an observer without its lock and reads
// the observer's info only then. Invalidation clears the info, possibly during such a call. A removed observer lives,
// with its info, until the loop's thread releases it after the call.
void stall_foreign_loop_detach(stall_foreign_loop *loop) {
    CFRunLoopRemoveObserver(loop->loop, loop->observer, kCFRunLoopCommonModes);
    CFTypeRef modes = CFRunLoopCopyAllModes(loop->loop);
    for (CFIndex index = 0; modes && index < CFArrayGetCount(modes); index++) {
        CFRunLoopRemoveObserver(loop->loop, loop->observer, CFArrayGetValueAtIndex(modes, index));
    }
    if (modes) CFRelease(modes);
    CFRelease(loop->observer);
    CFRelease(loop->loop);
    release(loop);
}

stall_beacon *stall_foreign_loop_beacon(const stall_foreign_loop *loop) { return loop->beacon; }

// The observer will see the exit of this run, so count its entry: otherwise the enclosing callout would seem over. If
// the run ends just now, there is no exit.
static void observe_running_mode(stall_foreign_loop *loop, CFTypeRef mode) {
    __atomic_fetch_add(&loop->depth, 1, __ATOMIC_RELAXED);
    CFRunLoopAddObserver(loop->loop, loop->observer, mode);
    CFTypeRef now = CFRunLoopCopyCurrentMode(loop->loop);
    if (now != mode) leave_run(loop);
    if (now) CFRelease(now);
}

void stall_foreign_loop_correct(stall_foreign_loop *loop, uint64_t word, uint64_t now_ns, char *mode) {
    mode[0] = 0;
    CFTypeRef current = CFRunLoopCopyCurrentMode(loop->loop);
    bool is_waiting = CFRunLoopIsWaiting(loop->loop);
    bool was_observed = true;
    if (current) {
        if (!CFStringGetCString(current, mode, MODE_CAPACITY, UTF8)) mode[0] = 0;
        was_observed = CFRunLoopContainsObserver(loop->loop, loop->observer, current);
        if (!was_observed) observe_running_mode(loop, current);
        CFRelease(current);
    }
    uint8_t status = STALL_LOOP_BUSY;
    if (is_waiting) status = STALL_LOOP_WAITING;
    if (!current) status = STALL_LOOP_IDLE;  // regardless of the counted depth
    if (status == STALL_LOOP_BUSY && was_observed) return;
    stall_beacon_correct(loop->beacon, word, status, now_ns);
    // The loop may have woken up before the observer was added.
    if (status == STALL_LOOP_WAITING && !CFRunLoopIsWaiting(loop->loop))
        stall_beacon_correct(
            loop->beacon, stall_beacon_pack(STALL_LOOP_WAITING, now_ns), STALL_LOOP_BUSY, stall_monotonic_ns());
}

bool stall_main_foreign_loop_is_waiting(void) {
    return stall_foreign_loop_is_available() && CFRunLoopIsWaiting(CFRunLoopGetMain());
}

void stall_main_foreign_loop_wake(void) {
    if (stall_foreign_loop_is_available()) CFRunLoopWakeUp(CFRunLoopGetMain());
}
