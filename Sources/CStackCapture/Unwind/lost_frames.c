// Frames that need more than the tables: the frame pointer is unknown, or no table covers the function.
#include "stall_memory.h"
#include "stack_walk.h"

enum {
    SEARCH_LIMIT = 65536,  // bytes of stack searched for a frame pointer
    // Frames after which a walk from an assumed frame is accepted: a frame at its prologue's distance, or any frame.
    PROLOGUE_TRIAL_DEPTH = 16,
    CALLEE_LIMIT = 4096,  // bytes of a called function that are searched for a jump
    SEARCH_TRIAL_DEPTH = 512,
};

// MARK: An unknown frame pointer
//
// A signal-free capture starts without the frame pointer. glibc's frames do not need it; the first frame that does
// determines it from its prologue. The word above it must be a return address, preferably one after a call of this
// function.

// Whether the function that was called here may have tail-called the one with this frame.
static bool may_jump_away(walk *walk, uint64_t callee) {
    stall_unwinder *unwinder = walk->unwinder;
    cfi_function function;
    if (!stall_cfi_find_function(&unwinder->tables, callee, &function) || function.start != callee) return true;
    const uint64_t length = function.end - function.start;
    if (length > CALLEE_LIMIT || !stall_read_exactly(unwinder->code, callee, length)) return true;
    return walk->architecture->may_jump_away(unwinder->code, length);
}

static call_evidence read_call(walk *walk, uint64_t return_address, uint64_t function) {
    const stall_architecture *architecture = walk->architecture;
    uint64_t target;
    uint8_t code[12];
    if (stall_read_exactly(code, return_address, 12) && architecture->is_signal_return(code)) return CALL_UNKNOWN;
    if (!stall_read_exactly(code, return_address - 8, 8)) return NO_CALL;
    if (!architecture->call_target(code, return_address, &target)) return NO_CALL;
    if (target == function) return CALL_OF_FUNCTION;
    if (target == 0 || (stall_read_exactly(code, target, 8) && architecture->is_jump(code))) return CALL_UNKNOWN;
    return may_jump_away(walk, target) ? CALL_ELSEWHERE : NO_CALL;
}

static call_evidence examine_return_address(walk *walk, uint64_t return_address, uint64_t function) {
    stall_unwinder *unwinder = walk->unwinder;
    return_address &= walk->architecture->address_mask;
    if (return_address < 8 || !stall_cfi_image_containing(&unwinder->tables, return_address - 1)) return NO_CALL;
    cached_call *cached = &unwinder->calls[stall_table_index(return_address ^ function, 8)];
    if (cached->return_address != return_address || cached->function != function) {
        *cached = (cached_call){return_address, function, read_call(walk, return_address, function)};
    }
    return cached->evidence;
}

// Whether `function` may have been called there. Code in no image, which was compiled at run time, has no table either,
// but a call is one.
static bool may_return_to(walk *walk, uint64_t return_address, uint64_t function) {
    const uint64_t address = return_address & walk->architecture->address_mask;
    if (address < 8) return false;
    return stall_cfi_image_containing(&walk->unwinder->tables, address - 1)
        ? examine_return_address(walk, address, function) != NO_CALL
        : read_call(walk, address, function) != NO_CALL;
}

static bool find_frame_size(walk *walk, uint64_t function, uint64_t *size) {
    cached_frame_size *cached = &walk->unwinder->frame_sizes[stall_table_index(function, 8)];
    if (cached->function != function) {
        uint8_t code[64];
        size_t length = stall_read_memory(code, function, sizeof code);
        *cached = (cached_frame_size){.function = function};
        cached->has_prologue = walk->architecture->frame_size(code, length, &cached->size);
    }
    *size = cached->has_prologue ? cached->size : 0;
    return cached->has_prologue;
}

// Whether a walk with this frame pointer arrives at the thread's first function, or gets very far. If it passes through
// `function` again, it may have begun in the dead frame of an earlier callee, which had saved the live frame pointer:
// *inner is that one, else 0.
static bool leads_outwards(
    const walk *original, uint64_t frame_pointer, uint64_t function, bool is_searched, uint64_t *inner
) {
    const unsigned trial_depth = is_searched ? SEARCH_TRIAL_DEPTH : PROLOGUE_TRIAL_DEPTH;
    const unsigned number = original->architecture->frame_pointer;
    walk trial = *original;
    trial.is_trial = true;
    trial.distrusts_zeros = is_searched;
    stall_registers_set(&trial.registers, number, frame_pointer);
    *inner = 0;
    for (unsigned depth = 0; depth < trial_depth; depth++) {
        if (stall_walk_is_overdue(&trial)) return false;
        const uint64_t own = trial.registers.value[number];
        const step_result result = trial.step(&trial);
        if (depth > 0 && *inner == 0 && trial.function == function) *inner = own;
        if (result != STEP_DONE) return result == STEP_OUTERMOST;
        const uint64_t counter = trial.registers.value[original->architecture->program_counter];
        // Dead frames are inconsistent: the function that one returns to has called another one.
        if (!trial.is_interrupted && !may_return_to(&trial, counter, trial.function)) return false;
    }
    return true;
}

// Searches the stack above `from` for a frame whose return address has the wanted evidence. The word above a frame
// pointer is the return address.
static bool search_frame_pointer(
    walk *walk, uint64_t function, uint64_t from, call_evidence wanted, uint64_t *found
) {
    for (uint64_t at = (from + 7) & ~UINT64_C(7); at - from < SEARCH_LIMIT; at += 8) {
        uint64_t return_address, inner;
        if (stall_walk_is_overdue(walk) || !stall_walk_read_word(walk, at + 8, &return_address)) return false;
        if (examine_return_address(walk, return_address, function) < wanted) continue;
        if (!leads_outwards(walk, at, function, true, &inner)) continue;
        if (wanted < CALL_OF_FUNCTION && inner > at) {
            at = (inner & ~UINT64_C(7)) - 8;
            continue;
        }
        *found = at;
        return true;
    }
    return false;
}

// A usual frame has the size given by its prologue. A function that allocates stack later (Swift does for values whose
// size is known only at run time) has its frame pointer somewhere above, behind dead stack full of old return
// addresses. So a frame is accepted only if the walk from it leads outwards.
static bool recover_frame_pointer(walk *walk, uint64_t function) {
    const stall_architecture *architecture = walk->architecture;
    const uint64_t stack = walk->registers.value[architecture->stack_pointer];
    uint64_t size, return_address, found, inner;
    if (find_frame_size(walk, function, &size) && stall_walk_read_word(walk, stack + size + 8, &return_address)) {
        const call_evidence evidence = examine_return_address(walk, return_address, function);
        if (evidence == CALL_OF_FUNCTION
            || (evidence != NO_CALL && leads_outwards(walk, stack + size, function, false, &inner))) {
            stall_registers_set(&walk->registers, architecture->frame_pointer, stack + size);
            return true;
        }
    }
    for (call_evidence wanted = CALL_OF_FUNCTION; wanted > NO_CALL; wanted--) {
        if (!search_frame_pointer(walk, function, stack + size, wanted, &found)) continue;
        stall_registers_set(&walk->registers, architecture->frame_pointer, found);
        walk->is_guessed = true;
        return true;
    }
    return false;
}

// A trial assumes one frame pointer and recovers no further one.
bool stall_walk_recover(walk *walk, uint64_t number, uint64_t function) {
    return number == walk->architecture->frame_pointer && !walk->is_trial && recover_frame_pointer(walk, function);
}

// MARK: Functions without a table

// The evidence for the return address according to a row whose CFA can be computed.
static call_evidence examine_row(walk *walk, const cached_row *row) {
    // If the CFA is unknown, recovering it will examine the same word.
    if (!stall_registers_know(&walk->registers, row->cfa_register)) return CALL_UNKNOWN;
    uint64_t cfa = walk->registers.value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    for (unsigned i = 0; i < walk->architecture->saved_count; i++) {
        uint64_t return_address;
        if (walk->architecture->saved[i] != walk->architecture->return_address) continue;
        if (row->saved[i] == IN_REGISTER) return CALL_UNKNOWN;
        if (!stall_walk_read_word(walk, cfa + (uint64_t)(int64_t)row->saved[i], &return_address)) return NO_CALL;
        return examine_return_address(walk, return_address, row->function);
    }
    return NO_CALL;
}

static bool try_row_from_code(walk *walk, uint64_t address, bool by_exit, cached_row *cached) {
    const stall_architecture *architecture = walk->architecture;
    stall_unwinder *unwinder = walk->unwinder;
    uint64_t start, end;
    code_row row;
    if (!stall_cfi_find_gap(&unwinder->tables, address, &start, &end)) return false;
    if (address - start > CODE_LIMIT / 2) start = address - CODE_LIMIT / 2;
    uint64_t length = end - start < CODE_LIMIT ? end - start : CODE_LIMIT;
    length = stall_read_memory(unwinder->code, start, length);
    if (address - start >= length
        || !architecture->examine_code(
            unwinder->code, length, start, address - start, walk->is_interrupted, by_exit, &row)) return false;
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

// The path to the return also works for functions, or parts of them, without a frame pointer.
bool stall_walk_row_from_code(walk *walk, uint64_t address, cached_row *row) {
    return try_row_from_code(walk, address, true, row) || try_row_from_code(walk, address, false, row);
}
