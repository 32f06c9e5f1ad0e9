// x86_64: register numbers of the System V psABI, figure 3.36.
#define _GNU_SOURCE
#include "architecture.h"

#include <string.h>
#include <ucontext.h>

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RETURN_ADDRESS };

static bool starts_with(const uint8_t *code, uint64_t left, const char *bytes, uint64_t count) {
    return left >= count && memcmp(code, bytes, count) == 0;
}

// [endbr64]  push rbp  mov rbp, rsp  (push reg)*  [sub rsp, n]
static bool frame_size(const uint8_t *code, uint64_t length, uint64_t *size) {
    uint64_t at = 0, pushed = 0;
    if (starts_with(code, length, "\xf3\x0f\x1e\xfa", 4)) at += 4;
    if (!starts_with(code + at, length - at, "\x55\x48\x89\xe5", 4)) return false;
    at += 4;
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

static unsigned system_call_length(const uint8_t code[8]) { return code[0] == 0x0f && code[1] == 0x05 ? 2 : 0; }

const stall_architecture stall_architecture_x86_64 = {
    .register_count = 17,
    .stack_pointer = RSP,
    .frame_pointer = RBP,
    .program_counter = RETURN_ADDRESS,
    .return_address = RETURN_ADDRESS,
    .async_context = R14,
    .saved_count = 7,
    .saved = {RBX, RBP, R12, R13, R14, R15, RETURN_ADDRESS},
    .address_mask = UINT64_MAX,
    .frame_size = frame_size,
    .call_target = call_target,
    .is_jump = is_jump,
    .system_call_length = system_call_length,
};

#if defined(__x86_64__)
const stall_architecture *const stall_native_architecture = &stall_architecture_x86_64;

void stall_registers_from_context(stall_registers *registers, const void *context) {
    static const uint8_t order[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const greg_t *saved = ((const ucontext_t *)context)->uc_mcontext.gregs;
    for (unsigned i = 0; i < 17; i++) registers->value[i] = (uint64_t)saved[order[i]];
    registers->known = (UINT64_C(1) << 17) - 1;
}
#endif
