// The violations that were noted and not taken yet, in slots; and the tests that own some.
#include "violations.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "images.h"
#include "stall_clock.h"
#include "stall_memory.h"
#include "stall_own_stack.h"
#include "stall_system_call.h"
#include "stall_thread.h"

// Of each owner at most OWNED at a time: its test has failed anyway.
enum { SLOTS = 512, OWNED = 64, OWNERS = 4096, TURNS = 10000 };
enum { FREE, WRITTEN, READY, READ };

typedef struct {
    uint32_t state;
    uint64_t number;
    stall_violation violation;
} slot;

static slot *slots;
static stall_own_stack *stacks;
// That all of this belongs to. In a child after fork no thread reads it, and some that wrote it are gone.
static int32_t process;
static uint64_t last_number;
// The owners, by number modulo OWNERS; one that has ended is no owner. The last bit: a violation of it found no room.
static uint64_t owners[OWNERS];
static uint32_t dropped;

bool violations_has_owner(uint64_t owner) {
    return owner != 0 && __atomic_load_n(&owners[owner % OWNERS], __ATOMIC_ACQUIRE) >> 1 == owner;
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

bool violations_note(const blocking_call *call, blocking_work work, uint64_t now) {
    // A child has a copy of the slots, or, after vfork, the parent's own.
    if (stall_own_process() != process) return false;
    slot *slot = claim_slot();
    if (!slot) {
        lose(work.owner);
        return true;
    }
    stall_violation *violation = &slot->violation;
    violation->call = call->name;
    violation->kind = call->kind;
    violation->target = work.target;
    violation->owner = work.owner;
    violation->began_ns = call->began_ns;
    violation->length_ns = now - call->began_ns;
    violation->thread = stall_gettid();
    violation->phase = work.phase;
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
    if (is_own || (work.owner != 0 && is_superfluous(violation))) {
        __atomic_store_n(&slot->state, FREE, __ATOMIC_RELEASE);
        return !is_own;
    }
    slot->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, READY, __ATOMIC_SEQ_CST);
    return true;
}

// MARK: The readers

bool violations_forget_parent(void) {
    if (process == stall_own_process()) return false;
    process = stall_own_process();
    stacks = NULL;
    slots = NULL;
    dropped = 0;
    return true;
}

bool violations_prepare(void) {
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
