// The properties of a processor that the unwinder needs. One file per processor; all of them are compiled everywhere,
// so that each can be tested on recorded bytes.
#pragma once
#include "stack_unwinder.h"

/// Maximum number of registers in a cached row.
#define SAVED_REGISTER_LIMIT 12

/// A function's frame according to its code, without a table. Offsets are relative to the CFA.
typedef struct {
    uint64_t function;  ///< offset of the function's start in the given code
    uint8_t cfa_register;
    int32_t cfa_offset;
    uint8_t saved_count;
    uint8_t saved_register[SAVED_REGISTER_LIMIT];
    int16_t saved_offset[SAVED_REGISTER_LIMIT];
} code_row;

struct stall_architecture {
    uint8_t register_count;   ///< number of DWARF columns in a row
    uint8_t stack_pointer;    ///< column numbers
    uint8_t frame_pointer;
    uint8_t program_counter;  ///< index of the program counter in a stall_registers
    uint8_t return_address;   ///< the column whose rule gives the caller's program counter
    uint8_t async_context;    ///< the register of the context in Swift's async functions
    uint8_t saved_count;
    uint8_t saved[SAVED_REGISTER_LIMIT];  ///< the registers that calls preserve, and the return address
    uint8_t system_call_arguments[6];  ///< the registers of a system call's arguments, which it preserves
    uint64_t address_mask;    ///< the bits of a code address; the others may contain a signature

    /// The distance of the frame pointer from the stack pointer after the given prologue. False if the function does
    /// not begin by setting up a frame.
    bool (*frame_size)(const uint8_t *code, uint64_t length, uint64_t *size);
    /// Determines the frame of the function around code[counter] from its instructions. `code` begins at `address`, in
    /// a range without a table. `by_exit`: follows the path to the function's return instead of its prologue. False if
    /// no frame is found.
    bool (*examine_code)(
        const uint8_t *code, uint64_t length, uint64_t address, uint64_t counter, bool is_interrupted,
        bool by_exit, code_row *row);
    /// Whether the code before a return address is a call. *target is its target, or 0 if that is in a register.
    bool (*call_target)(const uint8_t before[8], uint64_t return_address, uint64_t *target);
    /// Whether code at the target of a call jumps elsewhere: a PLT entry or a thunk.
    bool (*is_jump)(const uint8_t code[8]);
    /// The target of a stub at `address`, or the address of the word that contains it. Null where calls push their
    /// return address: it is then never unknown.
    bool (*jump_target)(const uint8_t code[16], uint64_t address, uint64_t *target, bool *is_slot);
    /// Whether a complete function can tail-call another one. True when in doubt.
    bool (*may_jump_away)(const uint8_t *code, uint64_t length);
    /// Whether code is the return path of a signal handler; no call precedes it.
    bool (*is_signal_return)(const uint8_t code[12]);
    /// The length of the system call instruction at the start of `code`; 0 if it is another instruction.
    unsigned (*system_call_length)(const uint8_t code[8]);
};

extern const stall_architecture *const stall_native_architecture;

/// Reads the registers from a signal handler's context (a ucontext_t). Async-signal-safe.
__attribute__((visibility("hidden"))) void stall_registers_from_context(stall_registers *registers, const void *context);
