// Decodes x86_64 machine code as far as unwinding without tables needs it.
#pragma once
#include "architecture.h"

/// Register numbers of DWARF. **Source:** System V psABI, figure 3.36.
enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RETURN_ADDRESS };

/// The length of the instruction at the start of `code`; 0 if it is unknown or truncated.
unsigned stall_x86_64_instruction_length(const uint8_t *code, uint64_t length);

/// Follows the instructions from `at` to the function's return or tail call, and derives the frame from the stack space
/// they release and the registers they restore. Sets all of `row` except the function. False if the path is ambiguous.
bool stall_x86_64_follow_to_exit(const uint8_t *code, uint64_t length, uint64_t at, code_row *row);
