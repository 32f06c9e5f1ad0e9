// What the unwinder must know about a processor. One file each fills it in; all of them are compiled
// everywhere, so that each can be tested on recorded bytes.
#pragma once
#include "stack_unwinder.h"

/// The most registers that a cached row keeps.
#define SAVED_REGISTER_LIMIT 12

/// What the code of a function tells about its frame, where no table does. Offsets are from the CFA.
typedef struct {
    uint64_t function;  ///< where the function begins, in the code given
    uint8_t cfa_register;
    int32_t cfa_offset;
    uint8_t saved_count;
    uint8_t saved_register[SAVED_REGISTER_LIMIT];
    int16_t saved_offset[SAVED_REGISTER_LIMIT];
} code_row;

struct stall_architecture {
    uint8_t register_count;   ///< DWARF columns that a row follows
    uint8_t stack_pointer;    ///< column numbers
    uint8_t frame_pointer;
    uint8_t program_counter;  ///< where a stall_registers keeps the program counter
    uint8_t return_address;   ///< the column whose rule yields the caller's program counter
    uint8_t async_context;    ///< where Swift's async functions keep their context
    uint8_t saved_count;
    uint8_t saved[SAVED_REGISTER_LIMIT];  ///< the registers that calls preserve, and the return address
    uint8_t system_call_arguments[6];  ///< the registers that a system call takes them from, and leaves as they are
    uint64_t address_mask;    ///< bits of a code address; the others may hold a signature

    /// How far the frame pointer lies above the stack pointer after the prologue whose code is given.
    /// False when the function does not begin by setting up a frame.
    bool (*frame_size)(const uint8_t *code, uint64_t length, uint64_t *size);
    /// Reads the frame of the function around code[counter] from its instructions. `code` begins at
    /// `address`, in a stretch that no table covers. `by_exit`: from the way to the function's return, not from
    /// its beginning.
    /// False when none is found.
    bool (*examine_code)(
        const uint8_t *code, uint64_t length, uint64_t address, uint64_t counter, bool is_interrupted,
        bool by_exit, code_row *row);
    /// Whether the code before a return address is a call, and of what: *target is 0 when that is in a
    /// register.
    bool (*call_target)(const uint8_t before[8], uint64_t return_address, uint64_t *target);
    /// Whether code at the target of a call goes on elsewhere: a PLT entry or a thunk.
    bool (*is_jump)(const uint8_t code[8]);
    /// Whether a function, given whole, can go on in another one without a call. True when in doubt.
    bool (*may_jump_away)(const uint8_t *code, uint64_t length);
    /// Whether code is what a signal handler returns to; no call lies before it.
    bool (*is_signal_return)(const uint8_t code[12]);
    /// The length of the system call instruction at the start of `code`; 0 when it is another one.
    unsigned (*system_call_length)(const uint8_t code[8]);
};

extern const stall_architecture *const stall_native_architecture;

/// Reads the registers that a signal handler was given (a ucontext_t). Safe in a handler.
void stall_registers_from_context(stall_registers *registers, const void *context);
