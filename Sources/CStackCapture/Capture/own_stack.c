#define _GNU_SOURCE
#include "stall_own_stack.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../Architecture/architecture.h"
#include "../Python/python_frames.h"
#include "stack_unwinder.h"
#include "stall_clock.h"
#include "stall_memory.h"

// Deeper parts of the stack are read piece by piece.
enum { COPIED_BYTES = 64 << 10, OWN_FRAMES = 8 };

struct stall_own_stack {
    stall_unwinder *unwinder;
    uint32_t is_taken;
    python_stack python;
    python_other_part python_part;
    uint8_t bytes[COPIED_BYTES];
};

stall_own_stack *stall_own_stack_create(void) {
    stall_own_stack *own = calloc(1, sizeof *own);
    if (own) own->unwinder = stall_unwinder_create(NULL);
    if (own && own->unwinder) return own;
    free(own);
    return NULL;
}

int32_t stall_own_stack_capture(
    stall_own_stack *own, uint64_t caller, stall_frame *frames, int32_t capacity, bool *is_truncated) {
    *is_truncated = false;
    ucontext_t context;
    if (getcontext(&context) != 0) return 0;
    uint32_t is_free = 0;
    if (!__atomic_compare_exchange_n(&own->is_taken, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return -1;
    stall_registers registers = {0};
    stall_registers_from_context(&registers, &context);
    const uint64_t base = registers.value[stall_native_architecture->stack_pointer];
    const stall_stack_copy copy = {
        own->bytes, base, stall_read_memory(own->bytes, base, COPIED_BYTES), .is_live = true};
    stall_unwinder_refresh(own->unwinder);
    uint32_t count = stall_unwind(own->unwinder, &registers, &copy, frames, (uint32_t)capacity, is_truncated);
    stall_python_read(stall_gettid(), &own->python);
    if (own->python.count > 0) {
        count = stall_python_insert(
            &own->python, own->unwinder, &own->python_part, frames, count, (uint32_t)capacity, *is_truncated);
    }
    __atomic_store_n(&own->is_taken, 0, __ATOMIC_RELEASE);
    // The frames between this function and the caller are those of the report itself.
    uint32_t first = 0;
    while (first < count && first < OWN_FRAMES && frames[first].address != caller) first++;
    if (first == count || frames[first].address != caller) return 0;
    memmove(frames, frames + first, (count - first) * sizeof *frames);
    return (int32_t)(count - first);
}
