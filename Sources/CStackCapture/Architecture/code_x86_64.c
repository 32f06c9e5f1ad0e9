// Decodes machine code: the length of each instruction, and its effect on the stack pointer.
//
// Source: Intel 64 Software Developer's Manual, volume 2, chapter 2 (formats) and appendix A (opcode maps).
#include "code_x86_64.h"

#include <string.h>

enum {
    STEP_LIMIT = 1000,    // instructions followed on the path to the return
    FRAME_LIMIT = 16384,  // bytes of a frame, so that offsets fit into a row
};

// The operands behind an opcode: a ModRM byte, and an immediate of some length.
// IZ: 2 or 4; IV: up to 8; IA: an address.
enum { M = 0x10, I1 = 1, I2 = 2, I4 = 4, IZ = 5, IV = 6, IA = 7, BAD = 0xff };

static unsigned one_byte_form(uint8_t opcode, uint8_t next) {
    const uint8_t group = (next >> 3) & 7;
    if (opcode < 0x40) return (opcode & 7) < 4 ? M : (opcode & 7) == 4 ? I1 : (opcode & 7) == 5 ? IZ : BAD;
    switch (opcode) {
    case 0x60 ... 0x62: case 0x82: case 0x9a: case 0xce: case 0xd4 ... 0xd6: case 0xea: return BAD;
    case 0x63: case 0x84 ... 0x8f: case 0xd0 ... 0xd3: case 0xd8 ... 0xdf: case 0xfe: case 0xff: return M;
    case 0x68: case 0xa9: return IZ;
    case 0x69: case 0x81: case 0xc7: return M | IZ;
    case 0x6a: case 0x70 ... 0x7f: case 0xa8: case 0xb0 ... 0xb7: case 0xcd: case 0xe0 ... 0xe7: case 0xeb: return I1;
    case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6: return M | I1;
    case 0xa0 ... 0xa3: return IA;
    case 0xb8 ... 0xbf: return IV;
    case 0xc2: case 0xca: return I2;
    case 0xc8: return I2 | I1;
    case 0xe8: case 0xe9: return I4;
    case 0xf6: return group < 2 ? M | I1 : M;
    case 0xf7: return group < 2 ? M | IZ : M;
    default: return 0;
    }
}

static unsigned two_byte_form(uint8_t opcode) {
    switch (opcode) {
    case 0x04: case 0x0a: case 0x0c: case 0x24 ... 0x27: case 0x36: case 0x39: case 0x3b ... 0x3f: return BAD;
    case 0x05 ... 0x09: case 0x0b: case 0x0e: case 0x30 ... 0x35: case 0x37: case 0x77: case 0xa0 ... 0xa2:
    case 0xa8 ... 0xaa: case 0xc8 ... 0xcf: return 0;
    case 0x80 ... 0x8f: return I4;
    case 0x0f: case 0x70 ... 0x73: case 0xa4: case 0xac: case 0xba: case 0xc2: case 0xc4 ... 0xc6: return M | I1;
    default: return M;
    }
}

// ModRM, SIB and displacement.
static unsigned operand_length(const uint8_t *code, uint64_t left) {
    const uint8_t mode = code[0] >> 6, base = code[0] & 7;
    if (mode == 3) return 1;
    const unsigned length = base == 4 ? 2 : 1;
    if (mode == 1) return length + 1;
    if (mode == 2) return length + 4;
    if (base == 5 || (base == 4 && left > 1 && (code[1] & 7) == 5)) return length + 4;
    return length;
}

unsigned stall_x86_64_instruction_length(const uint8_t *code, uint64_t length) {
    uint64_t at = 0;
    bool is_word = false, is_wide = false, is_short_address = false;
    if (length > 15) length = 15;
    for (; at < length; at++) {
        if (code[at] == 0x66) is_word = true;
        else if (code[at] == 0x67) is_short_address = true;
        else if (!memchr("\xf0\xf2\xf3\x2e\x36\x3e\x26\x64\x65", code[at], 9)) break;
    }
    if (at + 1 < length && (code[at] & 0xf0) == 0x40) is_wide = code[at++] & 8;
    if (at >= length) return 0;

    unsigned map = 0, form;
    if (code[at] == 0xc5) {  // VEX and EVEX contain the opcode map
        map = 1;
        at += 2;
    } else if ((code[at] == 0xc4 || code[at] == 0x62) && at + 1 < length) {
        map = code[at + 1] & 7;
        at += code[at] == 0xc4 ? 3 : 4;
        if (map == 0) return 0;
    } else if (code[at] == 0x0f) {
        map = 1;
        if (++at < length && (code[at] == 0x38 || code[at] == 0x3a)) map = code[at++] == 0x38 ? 2 : 3;
    }
    if (at >= length) return 0;
    const uint8_t opcode = code[at++];
    switch (map) {
    case 0: form = one_byte_form(opcode, at < length ? code[at] : 0); break;
    case 1: form = two_byte_form(opcode); break;
    case 3: form = M | I1; break;
    default: form = M; break;
    }
    if (form == BAD) return 0;
    if (form & M) {
        if (at >= length) return 0;
        at += operand_length(code + at, length - at);
    }
    switch (form & ~(unsigned)M) {
    case IZ: at += is_word ? 2 : 4; break;
    case IV: at += is_wide ? 8 : is_word ? 2 : 4; break;
    case IA: at += is_short_address ? 4 : 8; break;
    default: at += form & ~(unsigned)M; break;
    }
    return at <= length ? (unsigned)at : 0;
}

// MARK: The path to the return

// A position on the stack relative to a register's value at the start; RAX: unknown.
typedef struct {
    uint8_t base;
    int64_t offset;
} stack_position;

typedef struct {
    stack_position stack, frame;  // rsp and rbp as positions
    code_row *row;
    bool has_popped;           // the last instruction released stack space
} exit_path;

static bool is_code(const uint8_t *code, unsigned length, const char *bytes, unsigned count) {
    return length >= count && memcmp(code, bytes, count) == 0;
}

static int32_t last_bytes(const uint8_t *code, unsigned length, unsigned count) {
    int32_t value = 0;
    if (count == 1) return (int8_t)code[length - 1];
    memcpy(&value, code + length - 4, 4);
    return value;
}

static void pop(exit_path *way, unsigned encoded) {
    static const uint8_t numbers[16] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint8_t number = numbers[encoded];
    code_row *row = way->row;
    if (way->stack.offset < -FRAME_LIMIT || way->stack.offset > FRAME_LIMIT) way->stack.base = RAX;
    // Below the start are values pushed on the path.
    const bool is_saved = way->stack.base == RBP || (way->stack.base == RSP && way->stack.offset >= 0);
    if (is_saved && row->saved_count < SAVED_REGISTER_LIMIT) {
        row->saved_register[row->saved_count] = number;
        row->saved_offset[row->saved_count++] = (int16_t)way->stack.offset;
    }
    if (number == RBP) way->frame.base = RAX;
    if (number == RSP) way->stack.base = RAX;
    way->stack.offset += 8;
    way->has_popped = true;
}

static void take_stack_from_frame(exit_path *way, int32_t offset) {
    if (way->stack.base != way->frame.base) way->row->saved_count = 0;  // relative to another register
    way->stack = way->frame;
    way->stack.offset += offset;
    way->has_popped = true;
}

// mov, add, sub, and, lea and the like that set rsp to a value known only at run time.
static bool sets_stack_pointer(const uint8_t *code, unsigned length) {
    if (length < 3 || (code[0] & 0xf8) != 0x48) return false;
    if (code[1] == 0x89 || code[1] == 0x29 || code[1] == 0x01 || code[1] == 0x21 || code[1] == 0x81
        || code[1] == 0x83) {
        return !(code[0] & 1) && (code[2] & 0xc7) == 0xc4 && (code[2] & 0x38) != 0x38;  // the last: cmp
    }
    if (code[1] == 0x8b || code[1] == 0x2b || code[1] == 0x03 || code[1] == 0x23 || code[1] == 0x8d) {
        return !(code[0] & 4) && (code[2] & 0x38) == 0x20;
    }
    return false;
}

// Whether the path continues after this instruction, which is not a jump.
static bool follow(exit_path *way, const uint8_t *code, unsigned length) {
    const unsigned extension = length == 2 && code[0] == 0x41 ? 1 : 0;
    const uint8_t opcode = code[extension];
    way->has_popped = false;
    if (length == 1 + extension && (opcode & 0xf8) == 0x58) {
        pop(way, (opcode & 7) + 8 * extension);
    } else if (length == 1 + extension && (opcode & 0xf8) == 0x50) {
        way->stack.offset -= 8;
    } else if (is_code(code, length, "\x48\x83\xc4", 3) || is_code(code, length, "\x48\x81\xc4", 3)) {  // add rsp, n
        way->stack.offset += last_bytes(code, length, length - 3);
        way->has_popped = true;
    } else if (is_code(code, length, "\x48\x83\xec", 3) || is_code(code, length, "\x48\x81\xec", 3)) {  // sub rsp, n
        way->stack.offset -= last_bytes(code, length, length - 3);
    } else if (is_code(code, length, "\x48\x89\xe5", 3)) {  // mov rbp, rsp
        way->frame = way->stack;
    } else if (is_code(code, length, "\x48\x89\xec", 3) || is_code(code, length, "\xc9", 1)) {  // mov rsp, rbp; leave
        take_stack_from_frame(way, 0);
        if (code[0] == 0xc9) pop(way, 5);
    } else if (is_code(code, length, "\x48\x8d\x65", 3)
        || is_code(code, length, "\x48\x8d\xa5", 3)) {  // lea rsp, [rbp + n]
        take_stack_from_frame(way, last_bytes(code, length, length - 3));
    } else if (sets_stack_pointer(code, length)) {
        way->stack.base = RAX;
    }
    return !is_code(code, length, "\x0f\x0b", 2) && code[0] != 0xcc && code[0] != 0xf4;  // ud2, int3, hlt
}

// jmp r/m64, with REX or a notrack prefix.
static bool is_indirect_jump(const uint8_t *code, unsigned length) {
    const unsigned prefix = (code[0] & 0xf0) == 0x40 || code[0] == 0x3e ? 1 : 0;
    return length >= 2 + prefix && code[prefix] == 0xff && (code[prefix + 1] & 0x38) == 0x20;
}

// Whether an indirect jump stays in its function: its address was computed (add) or is read from a table.
static bool is_jump_table(const uint8_t *code, unsigned length, const uint8_t *before) {
    const bool follows_add = (before[0] & 0xf8) == 0x48 && (before[1] == 0x01 || before[1] == 0x03);
    return code[0] == 0x3e || follows_add || (length >= 7 && (code[length - 6] & 0x07) == 4);
}

static bool finish(const exit_path *way) {
    code_row *row = way->row;
    const int64_t cfa = way->stack.offset + 8;
    if (way->stack.base == RAX || cfa < 8 || cfa > FRAME_LIMIT || row->saved_count == SAVED_REGISTER_LIMIT)
        return false;
    for (unsigned i = 0; i < row->saved_count; i++) row->saved_offset[i] -= (int16_t)cfa;
    row->saved_register[row->saved_count] = RETURN_ADDRESS;
    row->saved_offset[row->saved_count++] = -8;
    row->cfa_register = way->stack.base;
    row->cfa_offset = (int32_t)cfa;
    return true;
}

bool stall_x86_64_follow_to_exit(const uint8_t *code, uint64_t length, uint64_t at, code_row *row) {
    exit_path way = {.stack = {RSP, 0}, .frame = {RBP, 0}, .row = row};
    const uint8_t *before = (const uint8_t *)"\x90\x90";  // nop
    *row = (code_row){0};
    for (unsigned steps = 0; steps < STEP_LIMIT && at < length; steps++) {
        const uint8_t *instruction = code + at;
        const unsigned size = stall_x86_64_instruction_length(instruction, length - at);
        if (size == 0) return false;
        at += size;
        if (instruction[0] == 0xc3 || instruction[0] == 0xc2 || is_code(instruction, size, "\xf3\xc3", 2)) {
            return finish(&way);
        }
        if (instruction[0] == 0xe9 || instruction[0] == 0xeb) {
            const int64_t target = (int64_t)at + last_bytes(instruction, size, size - 1);
            if (target < 0 || target >= (int64_t)length) return finish(&way);
            at = (uint64_t)target;
            continue;
        }
        if (is_indirect_jump(instruction, size)) {
            const bool is_thunk = way.stack.offset == 0;
            return !is_jump_table(instruction, size, before) && (way.has_popped || is_thunk) && finish(&way);
        }
        before = instruction;
        if (!follow(&way, instruction, size)) return false;
    }
    return false;
}
