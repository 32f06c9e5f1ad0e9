#include "cfi_program.h"

enum {  // DW_CFA: instructions. The first three have an operand in their low six bits.
    ADVANCE = 0x40, OFFSET = 0x80, RESTORE = 0xc0,
    NOP = 0x00, SET_LOCATION = 0x01, ADVANCE_1 = 0x02, ADVANCE_2 = 0x03, ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05, RESTORE_EXTENDED = 0x06, UNDEFINED = 0x07, SAME_VALUE = 0x08, REGISTER = 0x09,
    REMEMBER_STATE = 0x0a, RESTORE_STATE = 0x0b, DEFINE_CFA = 0x0c, DEFINE_CFA_REGISTER = 0x0d,
    DEFINE_CFA_OFFSET = 0x0e, DEFINE_CFA_EXPRESSION = 0x0f, EXPRESSION = 0x10, OFFSET_EXTENDED_SIGNED = 0x11,
    DEFINE_CFA_SIGNED = 0x12, DEFINE_CFA_OFFSET_SIGNED = 0x13, VALUE_OFFSET = 0x14, VALUE_OFFSET_SIGNED = 0x15,
    VALUE_EXPRESSION = 0x16, NEGATE_RETURN_ADDRESS_STATE = 0x2d, GNU_ARGUMENTS_SIZE = 0x2e,
    GNU_NEGATIVE_OFFSET = 0x2f,
};

static void set_rule(cfi_row *row, uint64_t number, cfi_rule rule) {
    if (number < STALL_REGISTER_LIMIT) row->rules[number] = rule;
}

static int64_t scaled(uint64_t factor, int64_t alignment) { return (int64_t)(factor * (uint64_t)alignment); }

// Runs until the location passes `address`. RESTORE uses `initial`, which is NULL inside a CIE.
static bool run(
    cfi_program *program, const cfi_common *common, byte_cursor cursor, uint64_t location, uint64_t address,
    const cfi_row *initial
) {
    cfi_row *row = &program->row;
    const int64_t alignment = common->data_alignment;
    unsigned depth = 0;
    while (cursor.at < cursor.end && !cursor.failed) {
        uint8_t opcode = (uint8_t)cursor_integer(&cursor, 1);
        uint8_t low = opcode & 0x3f;
        uint64_t advance = 0, number;
        switch (opcode & 0xc0) {
        case ADVANCE: opcode = ADVANCE; advance = low; break;
        case OFFSET: number = low; opcode = OFFSET_EXTENDED; goto saved_at_offset;
        case RESTORE: number = low; goto restore;
        default: break;
        }
        switch (opcode) {
        case NOP: case NEGATE_RETURN_ADDRESS_STATE: break;
        case ADVANCE: break;
        case ADVANCE_1: advance = cursor_integer(&cursor, 1); break;
        case ADVANCE_2: advance = cursor_integer(&cursor, 2); break;
        case ADVANCE_4: advance = cursor_integer(&cursor, 4); break;
        case SET_LOCATION:
            location = stall_cfi_encoded_pointer(&cursor, common->pointer_encoding, 0);
            if (location > address) return !cursor.failed;
            break;
        case OFFSET_EXTENDED:
            number = cursor_uleb(&cursor);
        saved_at_offset:
            set_rule(row, number, (cfi_rule){.kind = RULE_OFFSET, .value = scaled(cursor_uleb(&cursor), alignment)});
            break;
        case OFFSET_EXTENDED_SIGNED:
            number = cursor_uleb(&cursor);
            set_rule(row, number, (cfi_rule){
                .kind = RULE_OFFSET, .value = scaled((uint64_t)cursor_sleb(&cursor), alignment)});
            break;
        case GNU_NEGATIVE_OFFSET:
            number = cursor_uleb(&cursor);
            set_rule(row, number, (cfi_rule){.kind = RULE_OFFSET, .value = -scaled(cursor_uleb(&cursor), alignment)});
            break;
        case VALUE_OFFSET:
            number = cursor_uleb(&cursor);
            set_rule(row, number, (cfi_rule){
                .kind = RULE_VALUE_OFFSET, .value = scaled(cursor_uleb(&cursor), alignment)});
            break;
        case VALUE_OFFSET_SIGNED:
            number = cursor_uleb(&cursor);
            set_rule(row, number, (cfi_rule){
                .kind = RULE_VALUE_OFFSET, .value = scaled((uint64_t)cursor_sleb(&cursor), alignment)});
            break;
        case RESTORE_EXTENDED:
            number = cursor_uleb(&cursor);
        restore:
            if (!initial) return false;
            if (number < STALL_REGISTER_LIMIT) row->rules[number] = initial->rules[number];
            break;
        case UNDEFINED: set_rule(row, cursor_uleb(&cursor), (cfi_rule){.kind = RULE_UNDEFINED}); break;
        case SAME_VALUE: set_rule(row, cursor_uleb(&cursor), (cfi_rule){.kind = RULE_SAME}); break;
        case REGISTER:
            number = cursor_uleb(&cursor);
            set_rule(row, number, (cfi_rule){.kind = RULE_REGISTER, .value = (int64_t)cursor_uleb(&cursor)});
            break;
        case EXPRESSION: case VALUE_EXPRESSION: {
            number = cursor_uleb(&cursor);
            byte_cursor expression = cursor_slice(&cursor, cursor_uleb(&cursor));
            set_rule(row, number, (cfi_rule){
                .kind = opcode == EXPRESSION ? RULE_EXPRESSION : RULE_VALUE_EXPRESSION, .expression = expression});
            break;
        }
        case REMEMBER_STATE:
            if (depth == REMEMBERED_ROW_LIMIT) return false;
            program->remembered[depth++] = *row;
            break;
        case RESTORE_STATE:
            if (depth == 0) return false;
            *row = program->remembered[--depth];
            break;
        case DEFINE_CFA:
            row->cfa_is_expression = false;
            row->cfa_register = cursor_uleb(&cursor);
            row->cfa_offset = (int64_t)cursor_uleb(&cursor);
            break;
        case DEFINE_CFA_SIGNED:
            row->cfa_is_expression = false;
            row->cfa_register = cursor_uleb(&cursor);
            row->cfa_offset = scaled((uint64_t)cursor_sleb(&cursor), alignment);
            break;
        case DEFINE_CFA_REGISTER: row->cfa_register = cursor_uleb(&cursor); break;
        case DEFINE_CFA_OFFSET: row->cfa_offset = (int64_t)cursor_uleb(&cursor); break;
        case DEFINE_CFA_OFFSET_SIGNED:
            row->cfa_offset = scaled((uint64_t)cursor_sleb(&cursor), alignment);
            break;
        case DEFINE_CFA_EXPRESSION:
            row->cfa_is_expression = true;
            row->cfa_expression = cursor_slice(&cursor, cursor_uleb(&cursor));
            break;
        case GNU_ARGUMENTS_SIZE: cursor_uleb(&cursor); break;
        default: return false;
        }
        location += advance * common->code_alignment;
        if (location > address) break;
    }
    return !cursor.failed;
}

bool stall_cfi_program_run(cfi_program *program, const cfi_function *function, uint64_t address) {
    const cfi_common *common = function->common;
    memset(&program->row, 0, sizeof program->row);
    program->row.cfa_register = UINT64_MAX;
    if (!run(program, common, common->instructions, 0, UINT64_MAX, NULL)) return false;
    program->initial = program->row;
    return run(program, common, function->instructions, function->start, address, &program->initial);
}

enum {  // DW_OP: operations
    OP_ADDRESS = 0x03, OP_DEREFERENCE = 0x06, OP_CONST_1U = 0x08, OP_CONST_1S, OP_CONST_2U, OP_CONST_2S, OP_CONST_4U,
    OP_CONST_4S, OP_CONST_8U, OP_CONST_8S, OP_CONST_U, OP_CONST_S, OP_DUPLICATE, OP_DROP, OP_OVER, OP_PICK, OP_SWAP,
    OP_ROTATE, OP_ABSOLUTE = 0x19, OP_AND, OP_DIVIDE, OP_MINUS, OP_MODULO, OP_MULTIPLY, OP_NEGATE, OP_NOT, OP_OR,
    OP_PLUS, OP_PLUS_CONST, OP_SHIFT_LEFT, OP_SHIFT_RIGHT, OP_SHIFT_RIGHT_ARITHMETIC, OP_XOR, OP_BRANCH, OP_EQUAL,
    OP_GREATER_EQUAL, OP_GREATER, OP_LESS_EQUAL, OP_LESS, OP_NOT_EQUAL, OP_SKIP,
    OP_LITERAL_0 = 0x30, OP_LITERAL_31 = 0x4f, OP_REGISTER_0 = 0x70, OP_REGISTER_31 = 0x8f, OP_REGISTER_X = 0x92,
    OP_DEREFERENCE_SIZE = 0x94, OP_NOP = 0x96,
};

enum { VALUE_LIMIT = 32, OPERATION_LIMIT = 1000 };

typedef struct {
    uint64_t values[VALUE_LIMIT];
    unsigned count;
    bool failed;
} value_stack;

static void push(value_stack *stack, uint64_t value) {
    if (stack->count == VALUE_LIMIT) stack->failed = true; else stack->values[stack->count++] = value;
}

static uint64_t pop(value_stack *stack) {
    if (stack->count > 0) return stack->values[--stack->count];
    stack->failed = true;
    return 0;
}

static uint64_t peek(value_stack *stack, uint64_t depth) {
    if (depth < stack->count) return stack->values[stack->count - 1 - depth];
    stack->failed = true;
    return 0;
}

// Operands as in DWARF: signed for division and comparison, unsigned otherwise.
static uint64_t combine(value_stack *stack, uint8_t operation, uint64_t left, uint64_t right) {
    int64_t signed_left = (int64_t)left, signed_right = (int64_t)right;
    switch (operation) {
    case OP_AND: return left & right;
    case OP_OR: return left | right;
    case OP_XOR: return left ^ right;
    case OP_PLUS: return left + right;
    case OP_MINUS: return left - right;
    case OP_MULTIPLY: return left * right;
    case OP_SHIFT_LEFT: return right < 64 ? left << right : 0;
    case OP_SHIFT_RIGHT: return right < 64 ? left >> right : 0;
    case OP_SHIFT_RIGHT_ARITHMETIC: return (uint64_t)(signed_left >> (right < 64 ? right : 63));
    case OP_EQUAL: return signed_left == signed_right;
    case OP_NOT_EQUAL: return signed_left != signed_right;
    case OP_GREATER: return signed_left > signed_right;
    case OP_GREATER_EQUAL: return signed_left >= signed_right;
    case OP_LESS: return signed_left < signed_right;
    case OP_LESS_EQUAL: return signed_left <= signed_right;
    default: break;
    }
    if (right == 0 || (signed_left == INT64_MIN && signed_right == -1)) {
        stack->failed = true;
        return 0;
    }
    return operation == OP_DIVIDE ? (uint64_t)(signed_left / signed_right) : left % right;
}

static bool branch(byte_cursor *cursor, const byte_cursor *whole, int64_t distance) {
    int64_t target = cursor->at - whole->at + distance;
    if (target < 0 || target > whole->end - whole->at) return false;
    cursor->at = whole->at + target;
    cursor->address = whole->address + (uint64_t)target;
    return true;
}

static uint64_t based_on(
    value_stack *stack, const stall_registers *registers, uint64_t number, byte_cursor *cursor
) {
    uint64_t offset = (uint64_t)cursor_sleb(cursor);
    if (number < STALL_REGISTER_LIMIT && stall_registers_know(registers, (unsigned)number)) {
        return registers->value[number] + offset;
    }
    stack->failed = true;
    return 0;
}

bool stall_cfi_evaluate(
    byte_cursor expression, const stall_registers *registers, const uint64_t *initial, cfi_read_word read,
    void *context, uint64_t *result
) {
    value_stack stack = {.count = 0};
    byte_cursor cursor = expression;
    if (initial) push(&stack, *initial);
    for (unsigned count = 0; cursor.at < cursor.end; count++) {
        if (stack.failed || cursor.failed || count == OPERATION_LIMIT) return false;
        uint8_t operation = (uint8_t)cursor_integer(&cursor, 1);
        uint64_t value, size = 8;
        switch (operation) {
        case OP_LITERAL_0 ... OP_LITERAL_31: push(&stack, operation - OP_LITERAL_0); break;
        case OP_REGISTER_0 ... OP_REGISTER_31:
            push(&stack, based_on(&stack, registers, operation - OP_REGISTER_0, &cursor));
            break;
        case OP_REGISTER_X:
            value = cursor_uleb(&cursor);
            push(&stack, based_on(&stack, registers, value, &cursor));
            break;
        case OP_ADDRESS: case OP_CONST_8U: case OP_CONST_8S: push(&stack, cursor_integer(&cursor, 8)); break;
        case OP_CONST_1U: push(&stack, cursor_integer(&cursor, 1)); break;
        case OP_CONST_1S: push(&stack, (uint64_t)cursor_signed(&cursor, 1)); break;
        case OP_CONST_2U: push(&stack, cursor_integer(&cursor, 2)); break;
        case OP_CONST_2S: push(&stack, (uint64_t)cursor_signed(&cursor, 2)); break;
        case OP_CONST_4U: push(&stack, cursor_integer(&cursor, 4)); break;
        case OP_CONST_4S: push(&stack, (uint64_t)cursor_signed(&cursor, 4)); break;
        case OP_CONST_U: push(&stack, cursor_uleb(&cursor)); break;
        case OP_CONST_S: push(&stack, (uint64_t)cursor_sleb(&cursor)); break;
        case OP_DEREFERENCE_SIZE:
            size = cursor_integer(&cursor, 1);
            // fall through
        case OP_DEREFERENCE:
            if (size == 0 || size > 8 || !read(context, pop(&stack), &value)) return false;
            push(&stack, size == 8 ? value : value & ((UINT64_C(1) << 8 * size) - 1));
            break;
        case OP_DUPLICATE: push(&stack, peek(&stack, 0)); break;
        case OP_DROP: pop(&stack); break;
        case OP_OVER: push(&stack, peek(&stack, 1)); break;
        case OP_PICK: push(&stack, peek(&stack, cursor_integer(&cursor, 1))); break;
        case OP_SWAP: {
            uint64_t top = pop(&stack), second = pop(&stack);
            push(&stack, top);
            push(&stack, second);
            break;
        }
        case OP_ROTATE: {
            uint64_t top = pop(&stack), second = pop(&stack), third = pop(&stack);
            push(&stack, top);
            push(&stack, third);
            push(&stack, second);
            break;
        }
        case OP_ABSOLUTE:
            value = pop(&stack);
            push(&stack, (int64_t)value < 0 ? -value : value);
            break;
        case OP_NEGATE: push(&stack, -pop(&stack)); break;
        case OP_NOT: push(&stack, ~pop(&stack)); break;
        case OP_PLUS_CONST: push(&stack, pop(&stack) + cursor_uleb(&cursor)); break;
        case OP_BRANCH: {
            int64_t distance = cursor_signed(&cursor, 2);
            if (pop(&stack) != 0 && !branch(&cursor, &expression, distance)) return false;
            break;
        }
        case OP_SKIP:
            if (!branch(&cursor, &expression, cursor_signed(&cursor, 2))) return false;
            break;
        case OP_AND: case OP_DIVIDE: case OP_MINUS: case OP_MODULO: case OP_MULTIPLY: case OP_OR: case OP_PLUS:
        case OP_SHIFT_LEFT: case OP_SHIFT_RIGHT: case OP_SHIFT_RIGHT_ARITHMETIC: case OP_XOR: case OP_EQUAL:
        case OP_GREATER_EQUAL: case OP_GREATER: case OP_LESS_EQUAL: case OP_LESS: case OP_NOT_EQUAL: {
            uint64_t right = pop(&stack), left = pop(&stack);
            push(&stack, combine(&stack, operation, left, right));
            break;
        }
        case OP_NOP: break;
        default: return false;
        }
    }
    *result = pop(&stack);
    return !stack.failed && !cursor.failed;
}

// The expressions that compilers and libraries emit begin with their base register.
bool stall_cfi_expression_uses(byte_cursor expression, unsigned number) {
    return expression.at < expression.end && *expression.at == OP_REGISTER_0 + number;
}
