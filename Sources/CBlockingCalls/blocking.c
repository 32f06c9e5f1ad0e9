// The calling thread's part of a violation: whether there is one, and its record. Runs in any function of the app that
// may block, also in signal handlers and under any lock: it allocates nothing, and waits for another thread's capture alone.
#include "blocking.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "images.h"
#include "stall_beacon.h"
#include "stall_clock.h"
#include "stall_current.h"
#include "stall_expected.h"
#include "stall_handler.h"
#include "stall_memory.h"
#include "stall_own_stack.h"
#include "stall_system_call.h"
#include "stall_task_note.h"
#include "stall_thread.h"
#include "stall_watched_queue.h"

// Of each owner at most OWNED at a time: its test has failed anyway.
enum { SLOTS = 512, OWNED = 64, OWNERS = 4096, TURNS = 10000, CALLERS = 16, VISITS = 64 };
// The begin of a queue's item is not seen: for so long after a report its calls are taken for those of the same item.
enum { ITEM_NS = 1000000 };
enum { FREE, WRITTEN, READY, READ };

typedef struct {
    uint32_t state;
    uint64_t number;
    stall_violation violation;
} slot;

bool blocking_is_watched;

static slot *slots;
static stall_own_stack *stacks;
// That all of this belongs to. In a child after fork no thread reads it, and some that wrote it are gone.
static int32_t process;
static uint64_t last_number;
static bool has_reader;
static const void *owner_key;
// The owners, by number modulo OWNERS; one that has ended is no owner. The last bit: a violation of it found no room.
static uint64_t owners[OWNERS];
static uint32_t dropped;
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
    uint64_t item_until_ns;
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
    if (!value || *value == 0) return 0;
    return __atomic_load_n(&owners[*value % OWNERS], __ATOMIC_ACQUIRE) >> 1 == *value ? *value : 0;
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

// In a callout, a job or an item of a queue that has made no such call yet.
static bool is_in_work(void) {
    const stall_beacon *beacon = stall_current_beacon;
    if (!__atomic_load_n(&has_reader, __ATOMIC_ACQUIRE)) return false;
    if (is_busy(beacon)) return own.reported != current_work(beacon);
    own.queue = stall_watched_queue_current();
    return own.queue.beacon && stall_monotonic_ns() >= own.item_until_ns;
}

bool blocking_is_forbidden_here(uintptr_t frame) {
    if (is_made_by_call(frame) || stall_expected_is_thread()) return false;
    own.owner = current_owner();
    own.queue = (stall_watched_queue){0};
    if (own.owner == 0 && !is_in_work()) return false;
    return !stall_expected_is_task(stall_task_current()) && !is_on_signal_stack();
}

blocking_call blocking_begin(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller) {
    own.caller = caller;
    own.work = current_work(stall_current_beacon);
    own.frame = frame;
    return (blocking_call){name, stall_monotonic_ns(), caller, kind};
}

static void lose(uint64_t owner) {
    if (owner == 0) {
        __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
    } else {
        uint64_t entry = owner << 1;
        __atomic_compare_exchange_n(
            &owners[owner % OWNERS], &entry, entry | 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
}

static bool is_ready_of(const slot *slot, uint64_t owner) {
    return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == READY && slot->violation.owner == owner;
}

static slot *claim_slot(void) {
    for (int i = 0; i < SLOTS; i++) {
        uint32_t state = FREE;
        if (__atomic_compare_exchange_n(
                &slots[i].state, &state, WRITTEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return &slots[i];
    }
    return NULL;
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

static bool is_equal(const stall_violation *one, const stall_violation *other) {
    if (one->call != other->call || one->count != other->count) return false;
    for (uint32_t i = 0; i < one->count; i++) {
        if (one->frames[i].address != other->frames[i].address) return false;
    }
    return true;
}

// Whether an owner's violation is held already, or one too many. Those of an owner stay until its end. Two threads may both
// keep the same one: the reader compares them by names.
static bool is_superfluous(const stall_violation *violation) {
    int owned = 0;
    for (int i = 0; i < SLOTS; i++) {
        if (!is_ready_of(&slots[i], violation->owner)) continue;
        if (is_equal(&slots[i].violation, violation)) return true;
        owned++;
    }
    if (owned >= OWNED) lose(violation->owner);
    return owned >= OWNED;
}

static bool is_of_runtime(const stall_violation *violation) {
    return violation->kind == STALL_BLOCKING_LOCK && violation->count > 1
        && images_are_of_runtime(violation->frames[0].address) && images_are_of_runtime(violation->frames[1].address);
}

// Returns false if it is no call of the program's.
static bool note(const blocking_call *call, uint64_t now) {
    // A child has a copy of the slots, or, after vfork, the parent's own.
    if (stall_own_process() != process) return false;
    slot *slot = claim_slot();
    if (!slot) {
        lose(own.owner);
        return true;
    }
    const stall_beacon *beacon = own.queue.beacon ? NULL : stall_current_beacon;
    stall_violation *violation = &slot->violation;
    violation->call = call->name;
    violation->kind = call->kind;
    violation->beacon = beacon ? beacon : own.queue.beacon;
    violation->owner = own.owner;
    violation->began_ns = call->began_ns;
    violation->length_ns = now - call->began_ns;
    violation->thread = stall_gettid();
    violation->phase = beacon ? (uint8_t)(__atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) >> 56) : own.queue.phase;
    int32_t count = -1;
    // Another thread's capture takes some 100 us.
    for (int turn = 0; turn < TURNS && count < 0; turn++) {
        if (turn > 0) stall_system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        count = stall_own_stack_capture(
            stacks, call->caller, violation->frames, STALL_VIOLATION_FRAMES, &violation->is_truncated);
    }
    violation->count = count > 0 ? (uint32_t)count : 0;
    if (count <= 0) {
        // Of the stack the caller alone is known.
        violation->frames[0] = (stall_frame){.address = call->caller, .kind = STALL_FRAME_RETURN_ADDRESS};
        violation->count = 1;
        violation->is_truncated = true;
    }
    const bool is_own = is_of_runtime(violation);
    if (is_own || (own.owner != 0 && is_superfluous(violation))) {
        __atomic_store_n(&slot->state, FREE, __ATOMIC_RELEASE);
        return !is_own;
    }
    slot->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, READY, __ATOMIC_SEQ_CST);
    if (own.owner == 0) wake.call(wake.context);
    return true;
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

static void end_report(uint64_t now) {
    if (own.queue.beacon) {
        own.item_until_ns = now + ITEM_NS;
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
        if (note(call, now)) end_report(now);
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

// The notes of the parent are the parent's, and a thread that is not here may have been capturing.
static void forget_parent(void) {
    stacks = NULL;
    slots = NULL;
    has_reader = false;
    owner_key = NULL;
    dropped = 0;
    update();
}

static bool prepare(void) {
    if (!blocking_next("usleep")) return false;
    if (process != stall_own_process()) forget_parent();
    process = stall_own_process();
    images_find();
    if (!stacks) stacks = stall_own_stack_create();
    if (!stacks || slots) return stacks != NULL;
    // Once, so that the loader has looked up all that it calls before a handler of a signal comes there.
    stall_frame frames[4];
    bool is_truncated;
    stall_own_stack_capture(stacks, 0, frames, 4, &is_truncated);
    void *memory = mmap(
        NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    slots = memory;
    return true;
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

static slot *find_oldest(uint64_t owner) {
    slot *oldest = NULL;
    for (int i = 0; slots && i < SLOTS; i++) {
        if (__atomic_load_n(&slots[i].state, __ATOMIC_SEQ_CST) != READY) continue;
        if (slots[i].violation.owner != owner) continue;
        if (!oldest || slots[i].number < oldest->number) oldest = &slots[i];
    }
    return oldest;
}

bool stall_blocking_take(uint64_t owner, stall_violation *violation) {
    slot *oldest;
    while ((oldest = find_oldest(owner))) {
        uint32_t state = READY;
        if (!__atomic_compare_exchange_n(&oldest->state, &state, READ, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        // Another reader may have freed it meanwhile, and a thread have filled it again.
        const bool is_own = oldest->violation.owner == owner;
        if (is_own) *violation = oldest->violation;
        __atomic_store_n(&oldest->state, is_own ? FREE : READY, __ATOMIC_RELEASE);
        if (is_own) return true;
    }
    return false;
}

void stall_blocking_add_owner(uint64_t owner) {
    __atomic_store_n(&owners[owner % OWNERS], owner << 1, __ATOMIC_RELEASE);
}

bool stall_blocking_end_owner(uint64_t owner) {
    uint64_t entry = __atomic_load_n(&owners[owner % OWNERS], __ATOMIC_ACQUIRE);
    if (entry >> 1 != owner) return false;
    entry = __atomic_exchange_n(&owners[owner % OWNERS], 0, __ATOMIC_ACQ_REL);
    return entry & 1;
}

bool stall_blocking_has_any(uint64_t owner) { return find_oldest(owner) != NULL; }

uint32_t stall_blocking_take_dropped(void) { return __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED); }
