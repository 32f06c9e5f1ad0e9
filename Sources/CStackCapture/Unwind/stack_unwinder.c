// Walks a copied stack outwards, one frame per step: find the row of rules for the program counter, compute the CFA,
// read the caller's registers. Common rows are cached, so that a known stack needs no table lookup.
#include "stack_unwinder.h"

#include <string.h>
#include <sys/mman.h>

#include "stack_walk.h"
#include "stall_memory.h"

enum {
    SIGNAL_FRAME_LIMIT = 32,
    COMPILED_BLOCK_SIZE = 512 << 10,  // bytes
};

static void forget_rows(stall_unwinder *unwinder) {
    memset(unwinder->rows, 0, sizeof unwinder->rows);
    memset(unwinder->calls, 0, sizeof unwinder->calls);
    memset(unwinder->frame_sizes, 0, sizeof unwinder->frame_sizes);
    memset(unwinder->no_calls, 0, sizeof unwinder->no_calls);
}

stall_unwinder *stall_unwinder_create(const stall_architecture *architecture) {
    void *memory = mmap(NULL, sizeof(stall_unwinder), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    stall_unwinder *unwinder = memory;
    unwinder->architecture = architecture ? architecture : stall_native_architecture;
    unwinder->runtime = stall_own_runtime();
    return unwinder;
}

void stall_unwinder_set_process(
    stall_unwinder *unwinder, const stall_unwind_image *images, uint32_t count, const stall_swift_runtime *runtime
) {
    forget_rows(unwinder);
    unwinder->tables.is_of_other_process = true;
    unwinder->tables.others = images;
    unwinder->tables.other_count = count;
    unwinder->tables.image_count = 0;
    unwinder->tables.common.address = 0;
    unwinder->runtime = *runtime;
}

void stall_unwinder_destroy(stall_unwinder *unwinder) { munmap(unwinder, sizeof *unwinder); }

bool stall_unwinder_add_image(stall_unwinder *unwinder, uint64_t start, uint64_t end, uint64_t eh_frame_header) {
    forget_rows(unwinder);
    unwinder->tables.common.address = 0;
    return stall_cfi_tables_add(&unwinder->tables, start, end, eh_frame_header);
}

void stall_unwinder_refresh(stall_unwinder *unwinder) {
    if (stall_cfi_tables_refresh(&unwinder->tables)) forget_rows(unwinder);
}

uint32_t stall_unwinder_image_count(const stall_unwinder *unwinder) { return unwinder->tables.added_count; }

void stall_unwinder_set_deadline(stall_unwinder *unwinder, uint64_t deadline_ns) {
    unwinder->deadline_ns = deadline_ns;
}

// MARK: One step

static step_result step(walk *walk);

// Moves to the caller. The stack grows down, so each CFA lies above the last; that also ends every loop.
static step_result enter_caller(walk *walk, uint64_t cfa, uint64_t return_address, bool is_signal_frame) {
    const stall_architecture *architecture = walk->architecture;
    stall_registers *registers = &walk->registers;
    return_address &= architecture->address_mask;
    if (return_address == 0) return walk->distrusts_zeros ? STEP_LOST : STEP_OUTERMOST;
    if (is_signal_frame && ++walk->signal_frames > SIGNAL_FRAME_LIMIT) return STEP_LOST;
    if (!is_signal_frame) stall_registers_set(registers, architecture->stack_pointer, cfa);
    stall_registers_set(registers, architecture->program_counter, return_address);
    walk->is_interrupted = is_signal_frame;
    return STEP_DONE;
}

static bool is_known(const walk *walk, uint64_t number) {
    return number < STALL_REGISTER_LIMIT && stall_registers_know(&walk->registers, (unsigned)number);
}

static bool is_above(const walk *walk, uint64_t cfa) {
    uint64_t stack = walk->registers.value[walk->architecture->stack_pointer];
    return walk->is_interrupted ? cfa >= stack : cfa > stack;
}

static step_result step_by_cached_row(walk *walk, const cached_row *row) {
    const stall_architecture *architecture = walk->architecture;
    stall_registers *registers = &walk->registers;
    walk->function = row->function;
    if (row->is_outermost) return STEP_OUTERMOST;
    if (stall_runs_job(walk, row->function)) stall_walk_find_async_context(walk);
    if (stall_switches_task(walk, row->function)) stall_walk_find_switching_function(walk);
    if (!is_known(walk, row->cfa_register)) {
        return stall_walk_recover(walk, row->cfa_register, row->function) ? step(walk) : STEP_LOST;
    }
    uint64_t cfa = registers->value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    if (!is_above(walk, cfa)) return STEP_LOST;

    bool has_return_address = false;
    uint64_t return_address = 0;
    for (unsigned i = 0; i < architecture->saved_count; i++) {
        unsigned number = architecture->saved[i];
        uint64_t value;
        if (row->saved[i] == IN_REGISTER) continue;
        if (!stall_walk_read_word(walk, cfa + (uint64_t)(int64_t)row->saved[i], &value)) {
            registers->known &= ~(UINT64_C(1) << number);
        } else if (number == architecture->return_address) {
            return_address = value;
            has_return_address = true;
        } else {
            stall_registers_set(registers, number, value);
        }
    }
    if (!has_return_address) {  // a leaf function that still has it in its register
        unsigned number = architecture->return_address;
        if (number == architecture->program_counter || !walk->is_interrupted) return STEP_LOST;
        if (stall_registers_know(registers, number)) {
            return_address = registers->value[number];
        } else if (!stall_walk_find_leaf_caller(walk, cfa, row->function, &return_address)) {
            return STEP_LOST;
        }
    }
    return enter_caller(walk, cfa, return_address, false);
}

static bool row_is_usual(const walk *walk, const cfi_row *row, const cfi_function *function, cached_row *cached) {
    const stall_architecture *architecture = walk->architecture;
    if (row->cfa_is_expression || function->common->is_signal_frame) return false;
    if (row->cfa_register >= architecture->register_count) return false;
    if (row->cfa_offset != (int32_t)row->cfa_offset) return false;
    if (function->common->return_address != architecture->return_address) return false;
    *cached = (cached_row){
        .function = function->start,
        .cfa_offset = (int32_t)row->cfa_offset,
        .cfa_register = (uint8_t)row->cfa_register,
    };
    cached->is_outermost = row->rules[architecture->return_address].kind == RULE_UNDEFINED;
    if (cached->is_outermost) return true;
    if (row->rules[architecture->stack_pointer].kind != RULE_SAME) return false;
    for (unsigned i = 0; i < architecture->saved_count; i++) {
        const cfi_rule *rule = &row->rules[architecture->saved[i]];
        cached->saved[i] = IN_REGISTER;
        if (rule->kind == RULE_SAME) continue;
        if (rule->kind != RULE_OFFSET || rule->value <= INT16_MIN || rule->value > INT16_MAX) return false;
        cached->saved[i] = (int16_t)rule->value;
    }
    return true;
}

static bool apply_rule(walk *walk, const cfi_rule *rule, uint64_t cfa, uint64_t current, uint64_t *value) {
    const stall_registers *registers = &walk->registers;
    uint64_t address;
    switch (rule->kind) {
    case RULE_SAME: *value = current; return true;
    case RULE_UNDEFINED: return false;
    case RULE_OFFSET: return stall_walk_read_word(walk, cfa + (uint64_t)rule->value, value);
    case RULE_VALUE_OFFSET: *value = cfa + (uint64_t)rule->value; return true;
    case RULE_REGISTER:
        if (rule->value < 0 || rule->value >= STALL_REGISTER_LIMIT) return false;
        if (!stall_registers_know(registers, (unsigned)rule->value)) return false;
        *value = registers->value[rule->value];
        return true;
    case RULE_EXPRESSION:
        return stall_cfi_evaluate(rule->expression, registers, &cfa, stall_walk_read_word, walk, &address)
            && stall_walk_read_word(walk, address, value);
    case RULE_VALUE_EXPRESSION:
        return stall_cfi_evaluate(rule->expression, registers, &cfa, stall_walk_read_word, walk, value);
    }
    return false;
}

// Any row: signal frames, PLT entries, realigned stacks.
static step_result step_by_row(walk *walk, const cfi_row *row, const cfi_function *function) {
    const stall_architecture *architecture = walk->architecture;
    const uint64_t column = function->common->return_address;
    uint64_t cfa;
    walk->function = function->start;
    if (column >= architecture->register_count) return STEP_LOST;
    if (row->rules[column].kind == RULE_UNDEFINED) return STEP_OUTERMOST;
    // A recovery walks ahead, which overwrites the row: look it up again afterwards.
    uint64_t base = row->cfa_register;
    if (row->cfa_is_expression) {
        bool uses_frame = stall_cfi_expression_uses(row->cfa_expression, architecture->frame_pointer);
        base = uses_frame ? architecture->frame_pointer : architecture->stack_pointer;
    }
    if (!is_known(walk, base)) {
        return stall_walk_recover(walk, base, function->start) ? step(walk) : STEP_LOST;
    }
    if (!row->cfa_is_expression) {
        cfa = walk->registers.value[base] + (uint64_t)row->cfa_offset;
    } else if (!stall_cfi_evaluate(row->cfa_expression, &walk->registers, NULL, stall_walk_read_word, walk, &cfa)) {
        return STEP_LOST;
    }
    const bool is_signal_frame = function->common->is_signal_frame;
    if (!is_signal_frame && !is_above(walk, cfa)) return STEP_LOST;

    stall_registers caller = walk->registers;
    if (is_signal_frame) stall_registers_set(&caller, architecture->stack_pointer, cfa);
    for (unsigned number = 0; number < architecture->register_count; number++) {
        uint64_t value;
        if (row->rules[number].kind == RULE_SAME) continue;
        if (apply_rule(walk, &row->rules[number], cfa, caller.value[number], &value)) {
            stall_registers_set(&caller, number, value);
        } else {
            caller.known &= ~(UINT64_C(1) << number);
        }
    }
    if (row->rules[column].kind == RULE_SAME && !walk->is_interrupted) return STEP_LOST;
    if (!stall_registers_know(&caller, (unsigned)column)) return STEP_LOST;
    walk->registers = caller;
    return enter_caller(walk, cfa, caller.value[column], is_signal_frame);
}

// V8's built-in functions: its compiler made them when the program was built, in one block of the image without tables.
// Functions of C and assembly that have none, in such a block or before much data, are walked by their code.
static bool is_in_compiled_block(walk *walk, uint64_t address) {
    uint64_t start, end;
    return stall_cfi_find_gap(&walk->unwinder->tables, address, &start, &end) && end - start >= COMPILED_BLOCK_SIZE;
}

// Whether a call stands before the address, and its target: 0 where that is in a register or in memory.
static bool follows_call(const stall_architecture *architecture, uint64_t address, uint64_t *target) {
    uint8_t code[8];
    return address >= 4096 && stall_read_exactly(code, address - sizeof code, sizeof code)
        && architecture->call_target(code, address, target);
}

// Code of just-in-time compilers, in no image or in a block without tables: there is no start to search for. If it keeps
// a frame pointer, as they do for debuggers' and profilers' sake, the frame is {caller's frame pointer, return address}
// on both processors. Other saved registers are not known afterwards.
//
// A function of it without a frame, or at its first instruction, has its return address at the stack pointer on x86_64:
// then the frame pointer is its caller's.
static step_result step_by_frame_pointer(walk *walk, uint64_t address) {
    const stall_architecture *architecture = walk->architecture;
    const unsigned number = architecture->frame_pointer;
    const uint64_t stack = walk->registers.value[architecture->stack_pointer];
    uint64_t caller, return_address, target;
    walk->function = address;
    if (walk->is_interrupted && architecture->return_address == architecture->program_counter
        && stall_walk_read_word(walk, stack, &return_address) && follows_call(architecture, return_address, &target)
        && (target == 0 || (target <= address && address - target < CODE_LIMIT))) {
        walk->registers.known &= UINT64_C(1) << number;
        walk->is_guessed = true;
        return enter_caller(walk, stack + 8, return_address, false);
    }
    if (!is_known(walk, number)) return stall_walk_recover(walk, number, address) ? step(walk) : STEP_LOST;
    const uint64_t frame = walk->registers.value[number], cfa = frame + 16;
    if (frame % 8 != 0 || !is_above(walk, cfa)) return STEP_LOST;
    if (!stall_walk_read_word(walk, frame, &caller) || !stall_walk_read_word(walk, frame + 8, &return_address)) {
        return STEP_LOST;
    }
    return_address &= architecture->address_mask;
    if (!follows_call(architecture, return_address, &target)) return STEP_LOST;
    walk->registers.known = 0;
    stall_registers_set(&walk->registers, number, caller);
    walk->is_guessed = true;
    return enter_caller(walk, cfa, return_address, false);
}

// MARK: The walk

static step_result step(walk *walk) {
    stall_unwinder *unwinder = walk->unwinder;
    const uint64_t counter = walk->registers.value[walk->architecture->program_counter];
    const uint64_t address = walk->is_interrupted ? counter : counter - 1;
    cached_row *cached = &unwinder->rows[stall_table_index(address, 12)];
    if (cached->address == address) return step_by_cached_row(walk, cached);

    cfi_function function;
    cached_row usual;
    if (stall_cfi_find_function(&unwinder->tables, address, &function)) {
        if (!stall_cfi_program_run(&unwinder->program, &function, address)) return STEP_LOST;
        if (!row_is_usual(walk, &unwinder->program.row, &function, &usual)) {
            return step_by_row(walk, &unwinder->program.row, &function);
        }
    } else if (!stall_walk_row_from_code(walk, address, &usual)) {
        const bool is_known = stall_cfi_image_containing(&unwinder->tables, address) && !is_in_compiled_block(walk, address);
        return is_known ? STEP_LOST : step_by_frame_pointer(walk, address);
    }
    usual.address = address;
    *cached = usual;
    return step_by_cached_row(walk, cached);
}

bool stall_unwinder_find_part(stall_unwinder *unwinder, uint64_t address, uint64_t *start, uint64_t *end) {
    cfi_function function;
    if (!stall_cfi_find_function(&unwinder->tables, address, &function)) return false;
    *start = function.start;
    *end = function.end;
    return true;
}

uint64_t stall_unwinder_call_target(const stall_unwinder *unwinder, uint64_t return_address) {
    uint64_t target;
    return follows_call(unwinder->architecture, return_address, &target) ? target : 0;
}

uint32_t stall_unwind(
    stall_unwinder *unwinder, const stall_registers *registers, const stall_stack_copy *copy, stall_frame *frames,
    uint32_t capacity, bool *is_truncated
) {
    const stall_architecture *architecture = unwinder->architecture;
    walk walk = {
        .unwinder = unwinder,
        .architecture = architecture,
        .copy = copy,
        .registers = *registers,
        .step = step,
        .is_interrupted = true,
    };
    unwinder->far_length = 0;
    unwinder->step_count = 0;
    unwinder->is_overdue = false;
    uint32_t count = 0;
    step_result result = stall_registers_know(registers, architecture->program_counter)
            && stall_registers_know(registers, architecture->stack_pointer) ? STEP_DONE : STEP_LOST;
    while (result == STEP_DONE && count < capacity && !stall_walk_is_overdue(&walk)) {
        frames[count++] = (stall_frame){
            .address = walk.registers.value[architecture->program_counter],
            .kind = walk.is_interrupted ? STALL_FRAME_INTERRUPTED : STALL_FRAME_RETURN_ADDRESS,
            .is_guessed = walk.is_guessed,
        };
        async_hint left = stall_walk_async_hint(&walk);
        result = step(&walk);
        walk.hints[1] = walk.hints[0];
        walk.hints[0] = left;
    }
    *is_truncated = result != STEP_OUTERMOST;
    count = stall_walk_append_async_callers(&walk, frames, count, capacity);
    explicit_bzero(unwinder->far, sizeof unwinder->far);
    return count;
}
