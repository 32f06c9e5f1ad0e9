// Executes call frame instructions: (function, address) -> the row of rules that recovers the caller's
// registers.
//
// Source: DWARF 5, sections 2.5 (expressions) and 6.4.2 (instructions), and the GNU extensions in use.
#pragma once
#include "cfi_tables.h"

typedef enum : uint8_t {
    RULE_SAME,              // the caller's value is still in the register
    RULE_UNDEFINED,         // it is lost; for the return address: this is the outermost frame
    RULE_OFFSET,            // saved at CFA + value
    RULE_VALUE_OFFSET,      // it is CFA + value
    RULE_REGISTER,          // it is in register `value`
    RULE_EXPRESSION,        // saved at the address that the expression yields
    RULE_VALUE_EXPRESSION,  // it is what the expression yields
} cfi_rule_kind;

typedef struct {
    cfi_rule_kind kind;
    int64_t value;
    byte_cursor expression;
} cfi_rule;

/// How to find the canonical frame address (CFA) and, from it, the caller's registers.
typedef struct {
    bool cfa_is_expression;
    uint64_t cfa_register;
    int64_t cfa_offset;
    byte_cursor cfa_expression;
    cfi_rule rules[STALL_REGISTER_LIMIT];
} cfi_row;

enum { REMEMBERED_ROW_LIMIT = 16 };

/// Working memory, large; the unwinder keeps one.
typedef struct {
    cfi_row row;
    cfi_row initial;
    cfi_row remembered[REMEMBERED_ROW_LIMIT];
} cfi_program;

/// Computes `program->row` for `address` in `function`. False when the instructions do not make sense.
bool stall_cfi_program_run(cfi_program *program, const cfi_function *function, uint64_t address);

/// Reads one word of the stack that is being unwound.
typedef bool (*cfi_read_word)(void *context, uint64_t address, uint64_t *value);

/// Evaluates an expression; `initial` is on its stack when not NULL. False when it does not make sense, needs a
/// register that is not known, or memory that cannot be read.
bool stall_cfi_evaluate(
    byte_cursor expression, const stall_registers *registers, const uint64_t *initial, cfi_read_word read,
    void *context, uint64_t *result);
/// Whether evaluating would need register `number`.
bool stall_cfi_expression_uses(byte_cursor expression, unsigned number);
