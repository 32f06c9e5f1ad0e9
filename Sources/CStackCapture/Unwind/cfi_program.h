// Executes call frame instructions: (function, address) -> the row of rules that recovers the caller's registers.
//
// Source: DWARF 5, sections 2.5 (expressions) and 6.4.2 (instructions), and common GNU extensions.
#pragma once
#include "cfi_tables.h"

typedef enum : uint8_t {
    RULE_SAME,              // the caller's value is still in the register
    RULE_UNDEFINED,         // the value is lost; for the return address: this is the outermost frame
    RULE_OFFSET,            // saved at CFA + value
    RULE_VALUE_OFFSET,      // the value is CFA + value
    RULE_REGISTER,          // the value is in register `value`
    RULE_EXPRESSION,        // saved at the result of the expression
    RULE_VALUE_EXPRESSION,  // the value is the result of the expression
} cfi_rule_kind;

typedef struct {
    cfi_rule_kind kind;
    int64_t value;
    byte_cursor expression;
} cfi_rule;

/// The rules for the canonical frame address (CFA) and the caller's registers.
typedef struct {
    bool cfa_is_expression;
    uint64_t cfa_register;
    int64_t cfa_offset;
    byte_cursor cfa_expression;
    cfi_rule rules[STALL_REGISTER_LIMIT];
} cfi_row;

enum { REMEMBERED_ROW_LIMIT = 16 };

/// Large working memory, allocated once per unwinder.
typedef struct {
    cfi_row row;
    cfi_row initial;
    cfi_row remembered[REMEMBERED_ROW_LIMIT];
} cfi_program;

/// Computes `program->row` for `address` in `function`. False if the instructions are invalid.
bool stall_cfi_program_run(cfi_program *program, const cfi_function *function, uint64_t address);

/// Reads one word of the stack that is being unwound.
typedef bool (*cfi_read_word)(void *context, uint64_t address, uint64_t *value);

/// Evaluates an expression; `initial` is on its stack if not NULL. False if it is invalid, or needs an unknown register
/// or unreadable memory.
bool stall_cfi_evaluate(
    byte_cursor expression, const stall_registers *registers, const uint64_t *initial, cfi_read_word read,
    void *context, uint64_t *result);
/// Whether the expression needs register `number`.
bool stall_cfi_expression_uses(byte_cursor expression, unsigned number);
