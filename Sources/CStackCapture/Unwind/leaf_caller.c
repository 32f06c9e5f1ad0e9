// The caller of a function without a frame, on processors whose calls leave the return address in a register.
//
// A blocked thread's registers are in the kernel; it shows two of them, the program counter and the stack pointer. Most
// system calls are made by a function of the C library without a frame, whose return address is in neither. Its caller
// is found by the return address of its own call, which is on the stack: a word that follows a direct call of a
// function which calls the function without a frame, if the call frame information of that function, there and with
// this stack pointer, says that its return address is saved in this very word. Dead frames of earlier calls may pass
// that test as well: with two callers there is none.
#include "stall_memory.h"
#include "stack_walk.h"

enum {
    SEARCH_LIMIT = 16384,  // bytes of stack
    OTHER_LIMIT = 2048,    // bytes behind a caller in which another one is searched for
    JUMP_LIMIT = 3,        // stubs in a row
    TAIL_CALL_LIMIT = 1,   // of the called function
    TARGET_LIMIT = 16,     // of jumps out of a function
};

/// Every step here may be a system call.
static bool has_no_time(walk *walk) {
    return walk->unwinder->deadline_ns != 0 && stall_walk_has_passed_deadline(walk);
}

/// The function at the end of stubs: a linkage stub's entry is read.
static uint64_t resolve(walk *walk, uint64_t target) {
    for (int i = 0; i < JUMP_LIMIT && !has_no_time(walk); i++) {
        uint8_t code[16];
        uint64_t next;
        bool is_slot;
        if (!stall_read_exactly(code, target, sizeof code)
            || !walk->architecture->jump_target(code, target, &next, &is_slot)) break;
        if (is_slot && !stall_read_exactly(&next, next, sizeof next)) break;
        target = next;
    }
    return target;
}

/// The target of the direct call before a return address, behind stubs; 0 if there is none.
static uint64_t called_function(walk *walk, uint64_t return_address) {
    uint8_t code[8];
    uint64_t target;
    if (!stall_read_exactly(code, return_address - sizeof code, sizeof code)) return 0;
    if (!walk->architecture->call_target(code, return_address, &target) || target == 0) return 0;
    return resolve(walk, target);
}

/// Whether the return address of `function` at `counter`, with the stack pointer `stack`, is saved in the word at
/// `place`. Where its frame is found by the frame pointer, that is what it then must be.
static bool saves_return_address_in(
    walk *walk, const cfi_function *function, uint64_t counter, uint64_t stack, uint64_t place, uint64_t *frame_pointer
) {
    const stall_architecture *architecture = walk->architecture;
    stall_unwinder *unwinder = walk->unwinder;
    const cfi_row *row = &unwinder->program.row;
    if (!stall_cfi_program_run(&unwinder->program, function, counter - 1) || row->cfa_is_expression) return false;
    const cfi_rule *rule = &row->rules[architecture->return_address];
    if (rule->kind != RULE_OFFSET) return false;
    const uint64_t cfa = place - (uint64_t)rule->value;
    const uint64_t base = cfa - (uint64_t)row->cfa_offset;
    *frame_pointer = 0;
    if (row->cfa_register == architecture->stack_pointer) return base == stack;
    if (row->cfa_register != architecture->frame_pointer) return false;
    uint64_t size;
    uint8_t code[64];
    const size_t length = stall_read_memory(code, function->start, sizeof code);
    *frame_pointer = base;
    return architecture->frame_size(code, length, &size) && base == stack + size;
}

/// A word of the stack that follows a call, and the function without a frame.
typedef struct {
    uint64_t stack, place, leaf;
    bool is_ambiguous;  ///< the caller calls it more than once
    bool has_call;      ///< a function calls it, whatever its frame
} leaf_search;

/// The return address of the call of the leaf in `function` that goes with the search; 0 if it has none.
static uint64_t call_in_function(
    walk *walk, leaf_search *search, const cfi_function *function, uint64_t *frame_pointer
) {
    // Stubs are between images; within one there would be one for each call.
    const bool has_stubs = stall_cfi_image_containing(&walk->unwinder->tables, search->leaf)
        != stall_cfi_image_containing(&walk->unwinder->tables, function->start);
    uint64_t found = 0;
    uint64_t length = function->end - function->start;
    if (length > CODE_LIMIT) length = CODE_LIMIT;
    const uint8_t *const code = walk->unwinder->code;
    length = stall_read_memory(walk->unwinder->code, function->start, length);
    for (uint64_t at = 0; at + 8 <= length; at += 4) {
        const uint64_t return_address = function->start + at + 8;
        uint64_t target;
        if (!walk->architecture->call_target(code + at, return_address, &target) || target == 0) continue;
        if (target != search->leaf && (!has_stubs || resolve(walk, target) != search->leaf)) continue;
        search->has_call = true;
        if (!saves_return_address_in(walk, function, return_address, search->stack, search->place, frame_pointer))
            continue;
        search->is_ambiguous = found != 0;
        if (found != 0) return found;
        found = return_address;
    }
    return found;
}

/// The same in `start`, and in functions that it jumps to at its end.
static uint64_t call_behind(
    walk *walk, leaf_search *search, uint64_t start, int jumps, uint64_t *frame_pointer
) {
    cfi_tables *tables = &walk->unwinder->tables;
    cfi_function function;
    if (!stall_cfi_find_function(tables, start, &function) || function.start != start) return 0;
    const uint64_t end = function.end;
    uint64_t counter = call_in_function(walk, search, &function, frame_pointer);
    if (counter != 0 || jumps == 0) return counter;
    // The function's code has just been read.
    uint64_t targets[TARGET_LIMIT];
    unsigned count = 0;
    const uint8_t *const code = walk->unwinder->code;
    for (uint64_t at = 0; at + 16 <= end - start + 12 && at + 16 <= CODE_LIMIT && count < TARGET_LIMIT; at += 4) {
        bool is_slot;
        uint64_t *target = &targets[count];
        if (!walk->architecture->jump_target(code + at, start + at, target, &is_slot) || is_slot) continue;
        if (*target < start || *target >= end) count++;
    }
    for (unsigned i = 0; counter == 0 && i < count; i++) {
        counter = call_behind(walk, search, resolve(walk, targets[i]), jumps - 1, frame_pointer);
    }
    return counter;
}

/// As `call_behind`. Of most functions on a stack it is known after the first time that they do not call the leaf.
static uint64_t call_by(walk *walk, leaf_search *search, uint64_t start, uint64_t *frame_pointer) {
    known_call *known = &walk->unwinder->no_calls[stall_table_index(start ^ search->leaf, 8)];
    if (start == 0 || (known->function == start && known->callee == search->leaf)) return 0;
    search->is_ambiguous = search->has_call = false;
    const uint64_t counter = call_behind(walk, search, start, TAIL_CALL_LIMIT, frame_pointer);
    if (!search->has_call && !has_no_time(walk)) *known = (known_call){start, search->leaf};
    return counter;
}

bool stall_walk_find_leaf_caller(walk *walk, uint64_t stack, uint64_t leaf, uint64_t *return_address) {
    const stall_architecture *architecture = walk->architecture;
    if (!architecture->jump_target || walk->is_trial) return false;
    leaf_search search = {.stack = stack, .place = stack, .leaf = leaf};
    uint64_t found = 0, found_frame_pointer = 0;
    bool is_ambiguous = false;
    uint64_t end = stack + SEARCH_LIMIT;
    for (; search.place < end; search.place += 8) {
        uint64_t word, frame_pointer = 0;
        if (stall_walk_is_overdue(walk)) return false;
        if (!stall_walk_read_word(walk, search.place, &word)) break;  // the stack's end
        word &= architecture->address_mask;
        if (word < 8 || !stall_cfi_image_containing(&walk->unwinder->tables, word - 1)) continue;
        if (has_no_time(walk)) return false;
        const uint64_t counter = call_by(walk, &search, called_function(walk, word), &frame_pointer);
        if (counter == 0) continue;
        if (found != 0) return false;
        found = counter;
        end = search.place + OTHER_LIMIT;
        is_ambiguous = search.is_ambiguous;
        found_frame_pointer = frame_pointer;
    }
    if (found == 0) return false;
    if (found_frame_pointer != 0) {
        stall_registers_set(&walk->registers, architecture->frame_pointer, found_frame_pointer);
    }
    // The function is the right one, the line and what is inlined there perhaps not.
    if (is_ambiguous) walk->is_guessed = true;
    *return_address = found;
    return true;
}
