// Swift functions that await the running one are not on the stack: each left a context on the heap, {parent context,
// resume address}. The running function has the address of its own context in a register, at least on entry; in debug
// builds also below its saved frame pointer. It is called by the runtime's function that runs a job, directly or
// through one more runtime function.
//
// A function that continues elsewhere jumps to swift_task_switch, and so is on no stack while an executor's own code keeps
// the thread: the runtime's function keeps the address where it will continue in a register.
//
// Source: swift/ABI/Task.h, AsyncContext.
#include "stall_memory.h"
#include "stack_walk.h"

enum { ASYNC_LIMIT = 256 };  // maximum number of awaiting functions

extern char swift_job_run __attribute__((weak));
extern char swift_job_run_on_task_executor __attribute__((weak));
extern char swift_job_run_on_serial_and_task_executor __attribute__((weak));
extern char swift_task_switch __attribute__((weak));

stall_swift_runtime stall_own_runtime(void) {
    return (stall_swift_runtime){
        (uint64_t)&swift_job_run, (uint64_t)&swift_job_run_on_task_executor,
        (uint64_t)&swift_job_run_on_serial_and_task_executor, (uint64_t)&swift_task_switch};
}

typedef struct {
    uint64_t parent, resume;
} async_context;

static bool is_function_start(walk *walk, uint64_t address) {
    stall_unwinder *unwinder = walk->unwinder;
    uint64_t start, end, size;
    cfi_function function;
    if (stall_cfi_find_function(&unwinder->tables, address, &function)) return address == function.start;
    if (!stall_cfi_find_gap(&unwinder->tables, address, &start, &end)) return false;
    size_t length = stall_read_memory(unwinder->code, address, 64);
    return walk->architecture->frame_size(unwinder->code, length, &size);
}

static bool read_context(walk *walk, uint64_t address, async_context *context) {
    if (address == 0 || address % 8 != 0 || !stall_read_exactly(context, address, sizeof *context)) return false;
    context->resume &= walk->architecture->address_mask;
    return context->parent % 8 == 0 && is_function_start(walk, context->resume);
}

void stall_walk_find_async_context(walk *walk) {
    if (walk->is_trial) return;
    for (unsigned i = 0; i < 2 && walk->async_context == 0; i++) {
        async_context context;
        uint64_t kept;
        const async_hint *hint = &walk->hints[1 - i];
        if (read_context(walk, hint->context, &context)) {
            walk->async_context = hint->context;
        } else if (stall_walk_read_word(walk, hint->frame_pointer - 8, &kept) && read_context(walk, kept, &context)) {
            walk->async_context = kept;
        }
    }
}

async_hint stall_walk_async_hint(const walk *walk) {
    const stall_architecture *architecture = walk->architecture;
    const stall_registers *registers = &walk->registers;
    async_hint hint = {0, 0};
    if (stall_registers_know(registers, architecture->async_context)) {
        hint.context = registers->value[architecture->async_context];
    }
    if (stall_registers_know(registers, architecture->frame_pointer)) {
        hint.frame_pointer = registers->value[architecture->frame_pointer];
    }
    return hint;
}

// The register depends on the runtime's build, so it must be the only one with the start of a function.
void stall_walk_find_switching_function(walk *walk) {
    const stall_architecture *architecture = walk->architecture;
    uint64_t found = 0;
    if (walk->is_trial || walk->async_context != 0) return;
    for (unsigned i = 0; i < architecture->saved_count; i++) {
        const unsigned number = architecture->saved[i];
        if (number == architecture->frame_pointer || number == architecture->return_address) continue;
        if (!stall_registers_know(&walk->registers, number)) continue;
        const uint64_t value = walk->registers.value[number];
        if (value < 4096 || value == found || !is_function_start(walk, value)) continue;
        if (found != 0) return;
        found = value;
    }
    walk->switching_function = found;
}

// Appends the resume addresses of the awaiting functions. If the thread runs meanwhile, they are guesses.
uint32_t stall_walk_append_async_callers(walk *walk, stall_frame *frames, uint32_t count, uint32_t capacity) {
    async_context context;
    uint64_t address = walk->async_context;
    if (walk->switching_function != 0 && count < capacity) {
        frames[count++] = (stall_frame){
            .address = walk->switching_function, .kind = STALL_FRAME_ASYNC_RESUME, .is_guessed = !walk->copy->is_live};
    }
    for (unsigned i = 0; i < ASYNC_LIMIT && count < capacity && read_context(walk, address, &context); i++) {
        frames[count++] = (stall_frame){
            .address = context.resume, .kind = STALL_FRAME_ASYNC_RESUME, .is_guessed = !walk->copy->is_live};
        address = context.parent;
    }
    return count;
}
