// Reads x86_64 machine code, as far as an unwinder without tables needs it.
#pragma once
#include "architecture.h"

/// The length of the instruction at the start of `code`; 0 when it is not a known one or does not fit.
unsigned stall_x86_64_instruction_length(const uint8_t *code, uint64_t length);

/// Follows the instructions from `at` to where the function returns or jumps away: what they give back to the stack and
/// which registers they take from it is the frame. Fills in all of `row` but the function. False when the way is not
/// clear.
bool stall_x86_64_follow_to_exit(const uint8_t *code, uint64_t length, uint64_t at, code_row *row);
