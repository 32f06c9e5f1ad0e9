// Walks a copied stack outwards, one frame a step: find the row of rules for the program counter, compute the CFA,
// read the caller's registers. Rows of the usual shape are kept, so that a stack seen before costs no table look-up.
#include "stack_unwinder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi_program.h"
#include "process_memory.h"

enum {
    CACHED_ROW_COUNT = 4096,
    CACHED_CALL_COUNT = 256,
    FAR_SIZE = 4096,
    SIGNAL_FRAME_LIMIT = 32,
    SEARCH_LIMIT = 65536,  // bytes of stack searched for a lost frame pointer
    TRIAL_LENGTH = 16,     // frames that a walk from a guess must reach, or the outermost one
    ASYNC_LIMIT = 256,     // awaiting functions that are followed
    CODE_LIMIT = 65536,    // bytes of code searched for the start of a function
};

#define IN_REGISTER INT16_MIN

/// A row whose CFA is a register plus an offset and whose registers are unchanged or saved near the CFA: nearly all.
typedef struct {
    uint64_t address;  ///< 0: empty
    uint64_t function;
    int32_t cfa_offset;
    uint8_t cfa_register;
    bool is_outermost;                    ///< the thread's first function: it has no caller
    int16_t saved[SAVED_REGISTER_LIMIT];  ///< where stall_architecture.saved[i] is, from the CFA, or IN_REGISTER
} cached_row;

typedef enum {
    NO_CALL,           // not a return address
    CALL_ELSEWHERE,    // behind a call of something else, which may have jumped here
    CALL_UNKNOWN,      // behind a call through a register, a PLT entry or a signal
    CALL_OF_FUNCTION,  // behind a call of this very function
} call_evidence;

/// What was found out about a return address as one of `function`.
typedef struct {
    uint64_t return_address;  ///< 0: empty
    uint64_t function;
    call_evidence evidence;
} cached_call;

/// How far the frame pointer of a function lies above its stack pointer.
typedef struct {
    uint64_t function;  ///< 0: empty
    uint64_t size;
    bool has_prologue;
} cached_frame_size;

struct stall_unwinder {
    const stall_architecture *architecture;
    cfi_tables tables;
    cfi_program program;
    cached_row rows[CACHED_ROW_COUNT];
    cached_call calls[CACHED_CALL_COUNT];
    cached_frame_size frame_sizes[CACHED_CALL_COUNT];
    uint8_t code[CODE_LIMIT];
    uint64_t far_base, far_length;  ///< the piece of a live stack outside the copy that was read last
    uint8_t far[FAR_SIZE];
};

/// What a frame may keep Swift's async context in.
typedef struct {
    uint64_t context, frame_pointer;  ///< 0: not known
} async_hint;

/// One walk.
typedef struct {
    stall_unwinder *unwinder;
    const stall_architecture *architecture;
    const stall_stack_copy *copy;
    stall_registers registers;
    bool is_interrupted;  ///< the program counter is an instruction, not a return address
    bool is_guessed;
    bool is_trial;
    async_hint hints[2];     ///< of the two frames inside of this one, the nearer one first
    uint64_t async_context;  ///< of the innermost job that Swift's concurrency runs on this stack; 0: none
    unsigned signal_frames;
} walk;

typedef enum { STEP_DONE, STEP_OUTERMOST, STEP_LOST } step_result;

stall_unwinder *stall_unwinder_create(const stall_architecture *architecture) {
    void *memory = mmap(NULL, sizeof(stall_unwinder), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    stall_unwinder *unwinder = memory;
    unwinder->architecture = architecture ? architecture : stall_native_architecture;
    return unwinder;
}

void stall_unwinder_destroy(stall_unwinder *unwinder) { munmap(unwinder, sizeof *unwinder); }

static void forget_rows(stall_unwinder *unwinder) {
    memset(unwinder->rows, 0, sizeof unwinder->rows);
    memset(unwinder->calls, 0, sizeof unwinder->calls);
    memset(unwinder->frame_sizes, 0, sizeof unwinder->frame_sizes);
}

// Spreads addresses over 2^bits places.
static uint64_t place(uint64_t address, unsigned bits) { return address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits); }

bool stall_unwinder_add_image(stall_unwinder *unwinder, uint64_t start, uint64_t end, uint64_t eh_frame_header) {
    forget_rows(unwinder);
    unwinder->tables.common.address = 0;
    return cfi_tables_add(&unwinder->tables, start, end, eh_frame_header);
}

void stall_unwinder_refresh(stall_unwinder *unwinder) {
    if (cfi_tables_refresh(&unwinder->tables)) forget_rows(unwinder);
}

static bool holds(uint64_t base, uint64_t length, uint64_t address) {
    return length >= 8 && address >= base && address - base <= length - 8;
}

// Stack outside the copy is reached through an alternate signal stack, or past the copy's capacity. What lies behind a
// signal frame is at rest while the handler runs; whether it still does, nobody knows unless the copy is live.
static bool read_word(void *context, uint64_t address, uint64_t *value) {
    walk *walk = context;
    const stall_stack_copy *copy = walk->copy;
    if (holds(copy->base, copy->length, address)) {
        memcpy(value, copy->bytes + (address - copy->base), 8);
        return true;
    }
    if (!copy->is_live) {
        if (walk->signal_frames == 0) return false;
        walk->is_guessed = true;
    }
    stall_unwinder *unwinder = walk->unwinder;
    if (!holds(unwinder->far_base, unwinder->far_length, address)) {
        unwinder->far_base = address;
        unwinder->far_length = stall_read_memory(unwinder->far, address, FAR_SIZE);
        if (unwinder->far_length < 8) return false;
    }
    memcpy(value, unwinder->far + (address - unwinder->far_base), 8);
    return true;
}

// MARK: A frame pointer that is not known
//
// A signal-free capture begins without it. glibc's frames do without as well; the first frame that needs it tells where
// it is, by its prologue. What must lie above it is a return address: best, one behind a call of this function.

static call_evidence read_call(walk *walk, uint64_t return_address, uint64_t function) {
    const stall_architecture *architecture = walk->architecture;
    uint64_t target;
    uint8_t code[12];
    if (stall_read_exactly(code, return_address, 12) && architecture->is_signal_return(code)) return CALL_UNKNOWN;
    if (!stall_read_exactly(code, return_address - 8, 8)) return NO_CALL;
    if (!architecture->call_target(code, return_address, &target)) return NO_CALL;
    if (target == function) return CALL_OF_FUNCTION;
    if (target == 0 || (stall_read_exactly(code, target, 8) && architecture->is_jump(code))) return CALL_UNKNOWN;
    return CALL_ELSEWHERE;
}

static call_evidence examine_return_address(walk *walk, uint64_t address, uint64_t function) {
    stall_unwinder *unwinder = walk->unwinder;
    uint64_t return_address;
    if (!read_word(walk, address, &return_address)) return NO_CALL;
    return_address &= walk->architecture->address_mask;
    if (return_address < 8 || !cfi_image_containing(&unwinder->tables, return_address - 1)) return NO_CALL;
    cached_call *cached = &unwinder->calls[place(return_address ^ function, 8)];
    if (cached->return_address != return_address || cached->function != function) {
        *cached = (cached_call){return_address, function, read_call(walk, return_address, function)};
    }
    return cached->evidence;
}

static bool find_frame_size(walk *walk, uint64_t function, uint64_t *size) {
    cached_frame_size *cached = &walk->unwinder->frame_sizes[place(function, 8)];
    if (cached->function != function) {
        uint8_t code[64];
        size_t length = stall_read_memory(code, function, sizeof code);
        *cached = (cached_frame_size){.function = function};
        cached->has_prologue = walk->architecture->frame_size(code, length, &cached->size);
    }
    *size = cached->has_prologue ? cached->size : 0;
    return cached->has_prologue;
}

static step_result step(walk *walk);

// Whether a walk from here on with this frame pointer arrives at the thread's first function, or comes far.
static bool leads_outwards(const walk *original, uint64_t frame_pointer) {
    walk trial = *original;
    trial.is_trial = true;
    stall_registers_set(&trial.registers, trial.architecture->frame_pointer, frame_pointer);
    step_result result = STEP_DONE;
    for (int i = 0; i < TRIAL_LENGTH && result == STEP_DONE; i++) result = step(&trial);
    return result != STEP_LOST;
}

// Searches the stack above `from`. The word above a frame pointer is the return address.
static bool search_frame_pointer(walk *walk, uint64_t function, uint64_t from, call_evidence wanted, uint64_t *found) {
    for (uint64_t at = (from + 7) & ~UINT64_C(7); at - from < SEARCH_LIMIT; at += 8) {
        uint64_t word;
        if (!read_word(walk, at + 8, &word)) return false;
        if (examine_return_address(walk, at + 8, function) < wanted || !leads_outwards(walk, at)) continue;
        *found = at;
        return true;
    }
    return false;
}

static bool recover_frame_pointer(walk *walk, uint64_t function) {
    const stall_architecture *architecture = walk->architecture;
    const uint64_t stack = walk->registers.value[architecture->stack_pointer];
    uint64_t size, found;
    bool has_prologue = find_frame_size(walk, function, &size);
    call_evidence evidence = has_prologue ? examine_return_address(walk, stack + size + 8, function) : NO_CALL;
    if (evidence >= CALL_UNKNOWN || (evidence == CALL_ELSEWHERE && leads_outwards(walk, stack + size))) {
        stall_registers_set(&walk->registers, architecture->frame_pointer, stack + size);
        return true;
    }
    // The function made room after its prologue, or aligned its frame: only the stack itself can tell.
    for (call_evidence wanted = CALL_OF_FUNCTION; wanted > NO_CALL; wanted--) {
        if (!search_frame_pointer(walk, function, stack + size, wanted, &found)) continue;
        stall_registers_set(&walk->registers, architecture->frame_pointer, found);
        walk->is_guessed = true;
        return true;
    }
    return false;
}

static bool is_known(const walk *walk, uint64_t number) {
    return number < STALL_REGISTER_LIMIT && stall_registers_know(&walk->registers, (unsigned)number);
}

// Recovers register `number` if it is the frame pointer. A trial assumes one and recovers nothing.
static bool recover(walk *walk, uint64_t number, uint64_t function) {
    return number == walk->architecture->frame_pointer && !walk->is_trial && recover_frame_pointer(walk, function);
}

// MARK: Async callers
//
// The functions that await the running one are not on the stack: each left a context on the heap, {parent context, where
// to resume}. The running one keeps the address of its own context in a register, at least when it was entered; in debug
// builds also below its saved frame pointer. Its frame is the one that the runtime calls to run a job, directly or
// through one function of its own.
//
// Source: swift/ABI/Task.h, AsyncContext.

extern char swift_job_run __attribute__((weak));
extern char swift_job_run_on_task_executor __attribute__((weak));
extern char swift_job_run_on_serial_and_task_executor __attribute__((weak));

static bool runs_job(uint64_t function) {
    return function == (uint64_t)&swift_job_run || function == (uint64_t)&swift_job_run_on_task_executor
        || function == (uint64_t)&swift_job_run_on_serial_and_task_executor;
}

typedef struct {
    uint64_t parent, resume;
} async_context;

static bool is_function_start(walk *walk, uint64_t address) {
    stall_unwinder *unwinder = walk->unwinder;
    uint64_t start, end, size;
    cfi_function function;
    if (cfi_find_function(&unwinder->tables, address, &function)) return address == function.start;
    if (!cfi_find_gap(&unwinder->tables, address, &start, &end)) return false;
    size_t length = stall_read_memory(unwinder->code, address, 64);
    return walk->architecture->frame_size(unwinder->code, length, &size);
}

static bool read_context(walk *walk, uint64_t address, async_context *context) {
    if (address == 0 || address % 8 != 0 || !stall_read_exactly(context, address, sizeof *context)) return false;
    context->resume &= walk->architecture->address_mask;
    return context->parent % 8 == 0 && is_function_start(walk, context->resume);
}

static void find_async_context(walk *walk) {
    for (unsigned i = 0; i < 2 && walk->async_context == 0; i++) {
        async_context context;
        uint64_t kept;
        const async_hint *hint = &walk->hints[1 - i];
        if (read_context(walk, hint->context, &context)) {
            walk->async_context = hint->context;
        } else if (read_word(walk, hint->frame_pointer - 8, &kept) && read_context(walk, kept, &context)) {
            walk->async_context = kept;
        }
    }
}

static async_hint hint_of(const walk *walk) {
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

// Appends where the awaiting functions will resume. Read from a thread that runs on, they are guesses.
static uint32_t append_async_callers(walk *walk, stall_frame *frames, uint32_t count, uint32_t capacity) {
    async_context context;
    uint64_t address = walk->async_context;
    for (unsigned i = 0; i < ASYNC_LIMIT && count < capacity && read_context(walk, address, &context); i++) {
        frames[count++] = (stall_frame){
            .address = context.resume, .kind = STALL_FRAME_ASYNC_RESUME, .is_guessed = !walk->copy->is_live};
        address = context.parent;
    }
    return count;
}

// MARK: One step

// Moves to the caller. The stack grows down, so each CFA lies above the last; that also ends every loop.
static step_result enter_caller(walk *walk, uint64_t cfa, uint64_t return_address, bool is_signal_frame) {
    const stall_architecture *architecture = walk->architecture;
    stall_registers *registers = &walk->registers;
    return_address &= architecture->address_mask;
    if (return_address == 0) return STEP_OUTERMOST;
    if (is_signal_frame && ++walk->signal_frames > SIGNAL_FRAME_LIMIT) return STEP_LOST;
    if (!is_signal_frame) {
        stall_registers_set(registers, architecture->stack_pointer, cfa);
    }
    stall_registers_set(registers, architecture->program_counter, return_address);
    walk->is_interrupted = is_signal_frame;
    return STEP_DONE;
}

static bool is_above(const walk *walk, uint64_t cfa) {
    uint64_t stack = walk->registers.value[walk->architecture->stack_pointer];
    return walk->is_interrupted ? cfa >= stack : cfa > stack;
}

static step_result step_by_cached_row(walk *walk, const cached_row *row) {
    const stall_architecture *architecture = walk->architecture;
    stall_registers *registers = &walk->registers;
    if (row->is_outermost) return STEP_OUTERMOST;
    if (runs_job(row->function) && walk->async_context == 0 && !walk->is_trial) find_async_context(walk);
    if (!is_known(walk, row->cfa_register)) {
        return recover(walk, row->cfa_register, row->function) ? step(walk) : STEP_LOST;
    }
    uint64_t cfa = registers->value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    if (!is_above(walk, cfa)) return STEP_LOST;

    bool has_return_address = false;
    uint64_t return_address = 0;
    for (unsigned i = 0; i < architecture->saved_count; i++) {
        unsigned number = architecture->saved[i];
        uint64_t value;
        if (row->saved[i] == IN_REGISTER) continue;
        if (!read_word(walk, cfa + (uint64_t)(int64_t)row->saved[i], &value)) {
            registers->known &= ~(UINT64_C(1) << number);
        } else if (number == architecture->return_address) {
            return_address = value;
            has_return_address = true;
        } else {
            stall_registers_set(registers, number, value);
        }
    }
    if (!has_return_address) {  // a leaf that left it in its register
        unsigned number = architecture->return_address;
        if (number == architecture->program_counter || !walk->is_interrupted) return STEP_LOST;
        if (!stall_registers_know(registers, number)) return STEP_LOST;
        return_address = registers->value[number];
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
    case RULE_OFFSET: return read_word(walk, cfa + (uint64_t)rule->value, value);
    case RULE_VALUE_OFFSET: *value = cfa + (uint64_t)rule->value; return true;
    case RULE_REGISTER:
        if (rule->value < 0 || rule->value >= STALL_REGISTER_LIMIT) return false;
        if (!stall_registers_know(registers, (unsigned)rule->value)) return false;
        *value = registers->value[rule->value];
        return true;
    case RULE_EXPRESSION:
        return cfi_evaluate(rule->expression, registers, &cfa, read_word, walk, &address)
            && read_word(walk, address, value);
    case RULE_VALUE_EXPRESSION: return cfi_evaluate(rule->expression, registers, &cfa, read_word, walk, value);
    }
    return false;
}

// Any row: signal frames, PLT entries, realigned stacks.
static step_result step_by_row(walk *walk, const cfi_row *row, const cfi_function *function) {
    const stall_architecture *architecture = walk->architecture;
    const uint64_t column = function->common->return_address;
    uint64_t cfa;
    if (column >= architecture->register_count) return STEP_LOST;
    if (row->rules[column].kind == RULE_UNDEFINED) return STEP_OUTERMOST;
    // A recovery walks ahead, which overwrites the row: so look it up again after it.
    uint64_t base = row->cfa_register;
    if (row->cfa_is_expression) {
        bool uses_frame = cfi_expression_uses(row->cfa_expression, architecture->frame_pointer);
        base = uses_frame ? architecture->frame_pointer : architecture->stack_pointer;
    }
    if (!is_known(walk, base)) return recover(walk, base, function->start) ? step(walk) : STEP_LOST;
    if (!row->cfa_is_expression) {
        cfa = walk->registers.value[base] + (uint64_t)row->cfa_offset;
    } else if (!cfi_evaluate(row->cfa_expression, &walk->registers, NULL, read_word, walk, &cfa)) {
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

// MARK: Functions that no table describes

// Where the return address would be, by a row whose CFA can be computed.
static call_evidence examine_row(walk *walk, const cached_row *row) {
    if (!is_known(walk, row->cfa_register)) return CALL_UNKNOWN;  // recovering it will examine the same word
    uint64_t cfa = walk->registers.value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    for (unsigned i = 0; i < walk->architecture->saved_count; i++) {
        if (walk->architecture->saved[i] != walk->architecture->return_address) continue;
        return examine_return_address(walk, cfa + (uint64_t)(int64_t)row->saved[i], row->function);
    }
    return NO_CALL;
}

static bool row_from_code(walk *walk, uint64_t address, bool may_be_leaf, cached_row *cached) {
    const stall_architecture *architecture = walk->architecture;
    stall_unwinder *unwinder = walk->unwinder;
    uint64_t start, end;
    code_row row;
    if (!cfi_find_gap(&unwinder->tables, address, &start, &end)) return false;
    if (address - start > CODE_LIMIT / 2) start = address - CODE_LIMIT / 2;
    uint64_t length = end - start < CODE_LIMIT ? end - start : CODE_LIMIT;
    length = stall_read_memory(unwinder->code, start, length);
    if (address - start >= length
        || !architecture->examine_code(
            unwinder->code, length, start, address - start, walk->is_interrupted, may_be_leaf, &row)) return false;
    *cached = (cached_row){
        .function = start + row.function, .cfa_offset = row.cfa_offset, .cfa_register = row.cfa_register};
    for (unsigned i = 0; i < architecture->saved_count; i++) {
        cached->saved[i] = IN_REGISTER;
        for (unsigned j = 0; j < row.saved_count; j++) {
            if (row.saved_register[j] == architecture->saved[i]) cached->saved[i] = row.saved_offset[j];
        }
    }
    return examine_row(walk, cached) != NO_CALL;
}

// MARK: The walk

static step_result step(walk *walk) {
    stall_unwinder *unwinder = walk->unwinder;
    const uint64_t counter = walk->registers.value[walk->architecture->program_counter];
    const uint64_t address = walk->is_interrupted ? counter : counter - 1;
    cached_row *cached = &unwinder->rows[place(address, 12)];
    if (cached->address == address) return step_by_cached_row(walk, cached);

    cfi_function function;
    cached_row usual;
    if (cfi_find_function(&unwinder->tables, address, &function)) {
        if (!cfi_program_run(&unwinder->program, &function, address)) return STEP_LOST;
        if (!row_is_usual(walk, &unwinder->program.row, &function, &usual)) {
            return step_by_row(walk, &unwinder->program.row, &function);
        }
    } else if (!(walk->is_interrupted && row_from_code(walk, address, true, &usual))
               && !row_from_code(walk, address, false, &usual)) {
        return STEP_LOST;
    }
    usual.address = address;
    *cached = usual;
    return step_by_cached_row(walk, cached);
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
        .is_interrupted = true,
    };
    unwinder->far_length = 0;
    *is_truncated = true;
    uint32_t count = 0;
    step_result result = stall_registers_know(registers, architecture->program_counter)
            && stall_registers_know(registers, architecture->stack_pointer) ? STEP_DONE : STEP_LOST;
    while (result == STEP_DONE && count < capacity) {
        frames[count++] = (stall_frame){
            .address = walk.registers.value[architecture->program_counter],
            .kind = walk.is_interrupted ? STALL_FRAME_INTERRUPTED : STALL_FRAME_RETURN_ADDRESS,
            .is_guessed = walk.is_guessed,
        };
        async_hint left = hint_of(&walk);
        result = step(&walk);
        walk.hints[1] = walk.hints[0];
        walk.hints[0] = left;
    }
    *is_truncated = result != STEP_OUTERMOST;
    count = append_async_callers(&walk, frames, count, capacity);
    explicit_bzero(unwinder->far, sizeof unwinder->far);
    return count;
}
