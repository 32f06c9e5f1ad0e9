// The calling thread's part of a violation: whether there is one. Runs in any function of the app that may block, also in
// signal handlers and under any lock: it allocates nothing, and waits for another thread's capture alone (violations.c).
#define _GNU_SOURCE
#include "blocking.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "images.h"
#include "stall_beacon.h"
#include "stall_clock.h"
#include "stall_current.h"
#include "stall_expected.h"
#include "stall_handler.h"
#include "stall_memory.h"
#include "stall_system_call.h"
#include "stall_task_note.h"
#include "stall_watched_queue.h"
#include "violations.h"

enum { CALLERS = 16, VISITS = 64 };

bool blocking_is_watched;

static bool has_reader;
static const void *owner_key;
static struct {
    void (*call)(void *);
    void *context;
} wake;

static __thread struct {
    uintptr_t frame;    // of the call that is being noted; 0: none
    uintptr_t caller;   // of that call, and its callout or job
    uint64_t work;
    uint64_t reported;  // the callout or job of the last one
    uint64_t owner;     // of the call
    stall_watched_queue queue;  // whose item makes the call
    const void *item;           // the queue whose item made the last one, and how often the thread had rested after it
    uint64_t item_rests;
    uint64_t item_task;         // the task that made it
    bool is_of_item;            // the call is another one of that item
    // The callers of the last calls that have an owner, by their addresses modulo CALLERS.
    struct {
        uint64_t owner;
        uintptr_t caller;
        uint32_t visits;
    } last[CALLERS];
} own;

// Changes with each callout and job.
static uint64_t current_work(const stall_beacon *beacon) {
    if (!beacon) return 0;
    return __atomic_load_n(&beacon->word, __ATOMIC_RELAXED) ^ __atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) << 40;
}

static bool is_busy(const stall_beacon *beacon) {
    return beacon && stall_beacon_is_watched(beacon)
        && __atomic_load_n(&beacon->word, __ATOMIC_RELAXED) >> 56 == STALL_LOOP_BUSY;
}

// Of Swift's runtime: the value of a task local, or of the thread where it runs no task; NULL for the default. Through Swift
// code its metadata might be made here, under locks that the caller holds.
extern __attribute__((swiftcall)) const uint64_t *swift_task_localValueGet(const void *key) __attribute__((weak));

static uint64_t current_owner(void) {
    const void *key = __atomic_load_n(&owner_key, __ATOMIC_ACQUIRE);
    const uint64_t *value = key ? swift_task_localValueGet(key) : NULL;
    return value && violations_has_owner(*value) ? *value : 0;
}

// A handler of a signal on a stack of its own: it is no callout, and the stack may be too small for a report.
static bool is_on_signal_stack(void) {
    stack_t stack;
    return stall_system_call(SYS_sigaltstack, 0, (uintptr_t)&stack, 0, 0, 0, 0) == 0 && stack.ss_flags & SS_ONSTACK;
}

// Whether a call that is being noted makes this one. If it was left by longjmp, its frame is gone: the stack ends above it, or
// another function's variables are there.
static bool is_made_by_call(uintptr_t frame) {
    if (own.frame == 0 || frame >= own.frame || own.work != current_work(stall_current_beacon)) return false;
    uintptr_t caller = 0;
    return !stall_read_exactly(&caller, own.frame + sizeof caller, sizeof caller) || caller == own.caller;
}

// Items of a queue have no begin that could be seen. Between two of them the thread rests, or they are of different tasks, unless
// one follows the other at once.
static uint64_t count_rests(void) {
    struct rusage usage;
    return stall_system_call(SYS_getrusage, RUSAGE_THREAD, (uintptr_t)&usage, 0, 0, 0, 0) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

// In a callout, a job or an item of a queue that has made no such call yet.
static bool is_in_work(void) {
    const stall_beacon *beacon = stall_current_beacon;
    if (!__atomic_load_n(&has_reader, __ATOMIC_ACQUIRE)) return false;
    if (is_busy(beacon)) return own.reported != current_work(beacon);
    own.queue = stall_watched_queue_current();
    own.is_of_item = own.queue.queue == own.item && stall_task_current() == own.item_task && count_rests() == own.item_rests;
    return own.queue.queue != NULL;
}

bool blocking_is_forbidden_here(uintptr_t frame) {
    if (is_made_by_call(frame) || stall_expected_is_thread()) return false;
    own.owner = current_owner();
    own.queue = (stall_watched_queue){0};
    own.is_of_item = false;
    if (own.owner == 0 && !is_in_work()) return false;
    return !stall_expected_is_task(stall_task_current()) && !is_on_signal_stack();
}

blocking_call blocking_begin(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller) {
    own.caller = caller;
    own.work = current_work(stall_current_beacon);
    own.frame = frame;
    return (blocking_call){name, stall_monotonic_ns(), caller, kind};
}

// To capture a stack takes the thread 0.1 ms: after VISITS calls of one caller on one thread, its later ones are taken for
// repetitions. The caller may be a function of Foundation's, with other lines of the program behind it each time.
static bool is_exhausted(uintptr_t caller) {
    __typeof__(own.last[0]) *entry = &own.last[(caller >> 2) % CALLERS];
    if (entry->owner != own.owner || entry->caller != caller) {
        entry->owner = own.owner;
        entry->caller = caller;
        entry->visits = 0;
    }
    return entry->visits == VISITS || entry->visits++ == VISITS;
}

// A handler that leaves by siglongjmp, or a cancellation, would keep the slot and the capture. Returns the mask before.
static uint64_t block_signals(void) {
    const uint64_t blocked = ~stall_forced_signals();
    uint64_t before = 0;
    stall_system_call(SYS_rt_sigprocmask, SIG_BLOCK, (uintptr_t)&blocked, (uintptr_t)&before, sizeof before, 0, 0);
    return before;
}

static void restore_signals(uint64_t before) {
    stall_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&before, 0, sizeof before, 0, 0);
}

static bool note(const blocking_call *call, uint64_t now) {
    const stall_beacon *beacon = own.queue.queue ? NULL : stall_current_beacon;
    const blocking_work work = {
        .owner = own.owner,
        .target = beacon ? beacon : own.queue.queue,
        .phase = beacon ? (uint8_t)(__atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) >> 56) : own.queue.phase,
    };
    return violations_note(call, work, now);
}

static void end_report(void) {
    wake.call(wake.context);
    if (own.queue.queue) {
        own.item = own.queue.queue;
        own.item_task = stall_task_current();
        own.item_rests = count_rests();
    } else {
        own.reported = current_work(stall_current_beacon);
    }
}

void blocking_end(const blocking_call *call) {
    const int saved = errno;
    const uint64_t now = stall_monotonic_ns(), signals = block_signals();
    if (images_own_call(call->name, call->caller, own.owner != 0)) {
        // Of no code of the program's.
    } else if (own.owner != 0) {
        if (!is_exhausted(call->caller)) note(call, now);
    } else if (__atomic_load_n(&has_reader, __ATOMIC_ACQUIRE)) {
        if (own.is_of_item) {
            own.item_rests = count_rests();  // its own call's rest does not end the item
        } else if (note(call, now)) {
            end_report();
        }
    }
    own.frame = 0;
    errno = saved;
    restore_signals(signals);
}

void *blocking_next(const char *name) { return dlsym(RTLD_NEXT, name); }

// MARK: The readers

static stall_blocking_set set_elsewhere;

void stall_blocking_use(stall_blocking_set set) { set_elsewhere = set; }

static void update(void) {
    static const stall_blocking_core core = {blocking_is_forbidden_here, blocking_begin, blocking_end};
    const bool is_watched = has_reader || owner_key;
    __atomic_store_n(&blocking_is_watched, is_watched, __ATOMIC_RELEASE);
    if (set_elsewhere) set_elsewhere(&core, is_watched);
}

static bool prepare(void) {
    if (!blocking_next("usleep")) return false;
    if (violations_forget_parent()) {
        has_reader = false;
        owner_key = NULL;
        update();
    }
    images_find();
    return violations_prepare();
}

bool stall_blocking_start(void (*call)(void *), void *context) {
    if (!prepare() || has_reader) return false;
    wake.call = call;
    wake.context = context;
    __atomic_store_n(&has_reader, true, __ATOMIC_RELEASE);
    update();
    return true;
}

void stall_blocking_stop(void) {
    __atomic_store_n(&has_reader, false, __ATOMIC_RELEASE);
    update();
}

bool stall_blocking_own(const void *key) {
    if (!swift_task_localValueGet || !prepare()) return false;
    __atomic_store_n(&owner_key, key, __ATOMIC_RELEASE);
    update();
    return true;
}
