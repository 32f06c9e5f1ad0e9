// x86_64.
#define _GNU_SOURCE
#include "code_x86_64.h"

#include <string.h>
#include <ucontext.h>

static bool starts_with(const uint8_t *code, uint64_t left, const char *bytes, uint64_t count) {
    return left >= count && memcmp(code, bytes, count) == 0;
}

// The length of a prologue, or 0: push rbp  mov rbp, rsp. In the __do_global_dtors_aux of every image, which runs the
// destructors at an unload, cmp qword ptr [rip + n], 0 is between them.
static uint64_t prologue_length(const uint8_t *code, uint64_t length, uint64_t at) {
    if (starts_with(code + at, length - at, "\x55\x48\x89\xe5", 4)) return 4;
    if (starts_with(code + at, length - at, "\x55\x48\x83\x3d", 4) && at + 12 <= length
        && starts_with(code + at + 9, 3, "\x48\x89\xe5", 3)) return 12;
    return 0;
}

// [endbr64]  push rbp  mov rbp, rsp  (push reg)*  [sub rsp, n]
static bool frame_size(const uint8_t *code, uint64_t length, uint64_t *size) {
    uint64_t at = 0, pushed = 0;
    if (starts_with(code, length, "\xf3\x0f\x1e\xfa", 4)) at += 4;
    uint64_t prologue = prologue_length(code, length, at);
    if (prologue == 0) return false;
    at += prologue;
    for (;; pushed += 8) {
        uint64_t prefix = at < length && code[at] == 0x41 ? 1 : 0;
        if (at + prefix >= length || (code[at + prefix] & 0xf8) != 0x50) break;
        at += prefix + 1;
    }
    *size = pushed;
    uint32_t reserved;
    if (starts_with(code + at, length - at, "\x48\x83\xec", 3) && at + 4 <= length) {
        *size += code[at + 3];
    } else if (starts_with(code + at, length - at, "\x48\x81\xec", 3) && at + 7 <= length) {
        memcpy(&reserved, code + at + 3, 4);
        *size += reserved;
    }
    return true;
}

static void save(code_row *row, uint8_t number, int16_t offset) {
    if (row->saved_count == SAVED_REGISTER_LIMIT) return;
    row->saved_register[row->saved_count] = number;
    row->saved_offset[row->saved_count++] = offset;
}

// Whether only padding is between a return or jump, or the start of the range, and `at`: then a function begins there.
static bool follows_end(const uint8_t *code, uint64_t at) {
    static const char padding[] = "\xcc\x90\x66\x2e\x0f\x1f\x84\x44\x40\x80";
    for (uint64_t end = at; end > 0 && end + 16 > at; end--) {
        if (code[end - 1] == 0xc3) return true;                                           // ret
        if (end >= 2 && code[end - 2] == 0x0f && code[end - 1] == 0x0b) return true;       // ud2
        if (end >= 5 && code[end - 5] == 0xe9) return true;                               // jmp rel32
        if (code[end - 1] != 0 && !strchr(padding, code[end - 1])) return false;
    }
    return at < 16;
}

// Swift's own libraries lack up to half of their functions in .eh_frame. The path from an instruction to the function's
// return determines its frame, regardless of the prologue. If there is no such path, most functions have a frame
// pointer, and the pushes after the prologue give the registers' offsets.
static bool examine_code(
    const uint8_t *code, uint64_t length, uint64_t address, uint64_t counter, bool is_interrupted,
    bool by_exit, code_row *row
) {
    static const uint8_t numbers[16] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15};
    if (by_exit) {
        if (!stall_x86_64_follow_to_exit(code, length, counter + !is_interrupted, row)) return false;
        for (row->function = counter; row->function > 0; row->function--) {
            if ((address + row->function) % 16 == 0 && follows_end(code, row->function)) break;
        }
        return true;
    }
    *row = (code_row){.cfa_register = RSP, .cfa_offset = 8};
    save(row, RETURN_ADDRESS, -8);
    uint64_t start = counter + 1;
    while (start > 0 && prologue_length(code, length, start - 1) == 0) start--;
    if (start == 0) return false;
    row->function = --start;
    if (is_interrupted && counter == start) return true;
    save(row, RBP, -16);
    row->cfa_offset = 16;
    const uint64_t body = start + prologue_length(code, length, start);
    if (is_interrupted && counter < body) return true;
    row->cfa_register = RBP;
    int16_t offset = -24;
    for (uint64_t at = body; at + 1 < length; offset -= 8) {
        uint8_t extension = code[at] == 0x41 ? 8 : 0;
        if (extension) at++;
        if ((code[at] & 0xf8) != 0x50 || (is_interrupted && at >= counter)) break;
        save(row, numbers[(code[at] & 7) + extension], offset);
        at++;
    }
    return true;
}

static bool call_target(const uint8_t before[8], uint64_t return_address, uint64_t *target) {
    *target = 0;
    if (before[3] == 0xe8) {  // call rel32
        int32_t distance;
        memcpy(&distance, before + 4, 4);
        *target = return_address + (uint64_t)(int64_t)distance;
        return true;
    }
    for (int length = 2; length <= 7; length++) {  // call r/m64: opcode ff /2
        if (before[8 - length] == 0xff && (before[9 - length] & 0x38) == 0x10) return true;
    }
    return false;
}

static bool is_jump(const uint8_t code[8]) {
    uint64_t endbr = starts_with(code, 8, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
    return starts_with(code + endbr, 8 - endbr, "\xff\x25", 2) || code[endbr] == 0xe9
        || starts_with(code + endbr, 8 - endbr, "\xf2\xff\x25", 3);
}

static bool leads_away(const uint8_t *code, uint64_t length, uint64_t next, unsigned size) {
    int32_t distance = 0;
    if (next > length) return false;
    if (size == 1) distance = (int8_t)code[next - 1];
    if (size == 4) memcpy(&distance, code + next - 4, 4);
    return (int64_t)next + distance < 0 || (int64_t)next + distance >= (int64_t)length;
}

// Bytes inside of an instruction may look like a jump, which only causes needless doubt.
static bool may_jump_away(const uint8_t *code, uint64_t length) {
    for (uint64_t at = 0; at + 1 < length; at++) {
        if (code[at] == 0xff && (code[at + 1] & 0x38) == 0x20) return true;                       // jmp r/m64
        if (code[at] == 0xe9 && leads_away(code, length, at + 5, 4)) return true;                 // jmp rel32
        if (code[at] == 0xeb && leads_away(code, length, at + 2, 1)) return true;                 // jmp rel8
        if (code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80 && leads_away(code, length, at + 6, 4)) return true;
    }
    return false;
}

// mov rax, SYS_rt_sigreturn  syscall
static bool is_signal_return(const uint8_t code[12]) {
    return starts_with(code, 12, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
}

static unsigned system_call_length(const uint8_t code[8]) { return code[0] == 0x0f && code[1] == 0x05 ? 2 : 0; }

static const stall_architecture description = {
    .register_count = 17,
    .stack_pointer = RSP,
    .frame_pointer = RBP,
    .program_counter = RETURN_ADDRESS,
    .return_address = RETURN_ADDRESS,
    .async_context = R14,
    .saved_count = 7,
    .saved = {RBX, RBP, R12, R13, R14, R15, RETURN_ADDRESS},
    .system_call_arguments = {RDI, RSI, RDX, R10, R8, R9},
    .address_mask = UINT64_MAX,
    .frame_size = frame_size,
    .examine_code = examine_code,
    .call_target = call_target,
    .is_jump = is_jump,
    .may_jump_away = may_jump_away,
    .is_signal_return = is_signal_return,
    .system_call_length = system_call_length,
};
const stall_architecture *const stall_architecture_x86_64 = &description;

#if defined(__x86_64__)
const stall_architecture *const stall_native_architecture = &description;

void stall_registers_from_context(stall_registers *registers, const void *context) {
    static const uint8_t order[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const greg_t *saved = ((const ucontext_t *)context)->uc_mcontext.gregs;
    for (unsigned i = 0; i < 17; i++) registers->value[i] = (uint64_t)saved[order[i]];
    registers->known = (UINT64_C(1) << 17) - 1;
}
#endif
