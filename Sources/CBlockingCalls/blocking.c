// The calling thread's part of a violation: whether there is one, and its record. Runs in any function of the app that
// may block, also in signal handlers and under any lock: it allocates nothing and waits for nothing.
#include "blocking.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "stall_beacon.h"
#include "stall_clock.h"
#include "stall_current.h"
#include "stall_own_stack.h"
#include "stall_thread.h"

enum { SLOTS = 32 };
enum { FREE, WRITTEN, READY };

typedef struct {
    uint32_t state;
    uint64_t number;
    stall_violation violation;
} slot;

bool blocking_has_reader;

static slot *slots;
static stall_own_stack *stacks;
static uint64_t last_number;
static uint32_t dropped;
static struct {
    void (*call)(void *);
    void *context;
} wake;

static __thread struct {
    uintptr_t frame;    // of the call that is being reported; 0: none
    uint64_t reported;  // the callout or job of the last report
} own;

// Changes with each callout and job.
static uint64_t current_work(const stall_beacon *beacon) {
    return __atomic_load_n(&beacon->word, __ATOMIC_RELAXED) ^ __atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) << 40;
}

bool blocking_is_forbidden_here(uintptr_t frame) {
    const stall_beacon *beacon = stall_current_beacon;
    if (!beacon || !stall_beacon_is_watched(beacon)) return false;
    if (__atomic_load_n(&beacon->word, __ATOMIC_RELAXED) >> 56 != STALL_LOOP_BUSY) return false;
    // A call that was left by longjmp is over: its frame is gone.
    if (own.frame != 0 && frame < own.frame) return false;
    return own.reported != current_work(beacon);
}

blocking_call blocking_begin(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller) {
    own.frame = frame;
    return (blocking_call){name, stall_monotonic_ns(), caller, kind};
}

static slot *claim_slot(void) {
    for (int i = 0; i < SLOTS; i++) {
        uint32_t state = FREE;
        if (__atomic_compare_exchange_n(
                &slots[i].state, &state, WRITTEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return &slots[i];
    }
    __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
    return NULL;
}

void blocking_end(const blocking_call *call) {
    const int saved = errno;
    const uint64_t now = stall_monotonic_ns();
    const stall_beacon *beacon = stall_current_beacon;
    slot *slot = beacon && __atomic_load_n(&blocking_has_reader, __ATOMIC_ACQUIRE) ? claim_slot() : NULL;
    if (slot) {
        stall_violation *violation = &slot->violation;
        violation->call = call->name;
        violation->kind = call->kind;
        violation->beacon = beacon;
        violation->began_ns = call->began_ns;
        violation->length_ns = now - call->began_ns;
        violation->thread = stall_gettid();
        violation->phase = (uint8_t)(__atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) >> 56);
        violation->count = stall_own_stack_capture(
            stacks, call->caller, violation->frames, STALL_VIOLATION_FRAMES, &violation->is_truncated);
        if (violation->count == 0) {
            // Of the stack the caller alone is known.
            violation->frames[0] = (stall_frame){.address = call->caller, .kind = STALL_FRAME_RETURN_ADDRESS};
            violation->count = 1;
            violation->is_truncated = true;
        }
        slot->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->state, READY, __ATOMIC_SEQ_CST);
        wake.call(wake.context);
    }
    if (beacon) own.reported = current_work(beacon);
    own.frame = 0;
    errno = saved;
}

void *blocking_next(const char *name) { return dlsym(RTLD_NEXT, name); }

// MARK: The reader

bool stall_blocking_start(void (*call)(void *), void *context) {
    if (blocking_has_reader || !blocking_next("usleep")) return false;
    if (!stacks) stacks = stall_own_stack_create();
    if (!stacks) return false;
    if (!slots) {
        void *memory = mmap(
            NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return false;
        slots = memory;
    }
    wake.call = call;
    wake.context = context;
    __atomic_store_n(&blocking_has_reader, true, __ATOMIC_RELEASE);
    return true;
}

void stall_blocking_stop(void) { __atomic_store_n(&blocking_has_reader, false, __ATOMIC_RELEASE); }

bool stall_blocking_take(stall_violation *violation) {
    slot *oldest = NULL;
    for (int i = 0; slots && i < SLOTS; i++) {
        if (__atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) != READY) continue;
        if (!oldest || slots[i].number < oldest->number) oldest = &slots[i];
    }
    if (!oldest) return false;
    *violation = oldest->violation;
    __atomic_store_n(&oldest->state, FREE, __ATOMIC_RELEASE);
    return true;
}

bool stall_blocking_has_any(void) {
    for (int i = 0; slots && i < SLOTS; i++) {
        if (__atomic_load_n(&slots[i].state, __ATOMIC_SEQ_CST) == READY) return true;
    }
    return false;
}

uint32_t stall_blocking_take_dropped(void) { return __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED); }
