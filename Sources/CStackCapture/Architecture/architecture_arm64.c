// arm64: register numbers of "DWARF for the Arm 64-bit Architecture" (aadwarf64), section 4.1.
#define _GNU_SOURCE
#include "architecture.h"

#include <string.h>
#include <ucontext.h>

enum { X19 = 19, X22 = 22, X29 = 29, X30 = 30, SP = 31, PC = 32 };

static uint32_t instruction(const uint8_t *code) {
    uint32_t word;
    memcpy(&word, code, 4);
    return word;
}

static bool stores_to_stack(uint32_t word) {
    return (word & 0xff4003e0) == 0xa90003e0     // stp x, x, [sp, #k] or [sp, #k]!
        || (word & 0xff4003e0) == 0x6d0003e0     // stp d, d
        || (word & 0xffc003e0) == 0xf90003e0     // str x, [sp, #k]
        || (word & 0xffe00fe0) == 0xf8000fe0;    // str x, [sp, #k]!
}

static bool is_hint(uint32_t word) { return (word & 0xfffff01f) == 0xd503201f; }  // paciasp, bti, nop

// Registers are stored, x29 is set to sp plus the operand of `add x29, sp, #k` (`mov x29, sp`: 0), and every later `sub
// sp, sp, #k` adds to the distance.
static bool frame_size(const uint8_t *code, uint64_t length, uint64_t *size) {
    bool is_set = false;
    uint64_t distance = 0;
    for (uint64_t at = 0; at + 4 <= length; at += 4) {
        uint32_t word = instruction(code + at);
        uint64_t immediate = (uint64_t)(word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0);
        if ((word & 0xff8003ff) == 0x910003fd) {  // add x29, sp, #immediate
            distance = immediate;
            is_set = true;
        } else if ((word & 0xff8003ff) == 0xd10003ff) {  // sub sp, sp, #immediate
            if (is_set) distance += immediate;
        } else if (!stores_to_stack(word) && !is_hint(word)) {
            break;
        }
    }
    *size = distance;
    return is_set;
}

// Whether the code continues as a linkage stub does, up to its jump. Linkers write no call frame information for stubs;
// they have no frame.
static bool is_in_stub(const uint8_t *code, uint64_t length) {
    for (uint64_t at = 0; at + 4 <= length && at < 20; at += 4) {
        const uint32_t word = instruction(code + at);
        if (word == 0xd61f0220) return true;  // br x17
        const bool is_adrp = (word & 0x9f00001f) == 0x90000010, is_load = (word & 0xffc003ff) == 0xf9400211;
        const bool is_add = (word & 0xffc003ff) == 0x91000210;  // add x16, x16, #k
        if (!is_adrp && !is_load && !is_add && !is_hint(word)) return false;
    }
    return false;
}

// In every function with calls x29 points to the saved pair, so the frame record alone gives the caller.
static bool examine_code(
    const uint8_t *code, uint64_t length, uint64_t address, uint64_t counter, bool is_interrupted,
    bool by_exit, code_row *row
) {
    (void)address;
    if (is_interrupted && by_exit && is_in_stub(code + counter, length - counter)) {
        *row = (code_row){.function = counter & ~UINT64_C(3), .cfa_register = SP};
        return true;
    }
    *row = (code_row){.function = counter & ~UINT64_C(3), .cfa_register = X29, .cfa_offset = 16};
    row->saved_count = 2;
    row->saved_register[0] = X29;
    row->saved_offset[0] = -16;
    row->saved_register[1] = X30;
    row->saved_offset[1] = -8;
    for (; !is_interrupted && !by_exit; row->function -= 4) {
        uint64_t size;
        if (frame_size(code + row->function, length - row->function, &size)) return true;
        if (row->function < 4) return false;
    }
    return false;
}

static bool call_target(const uint8_t before[8], uint64_t return_address, uint64_t *target) {
    uint32_t word = instruction(before + 4);
    *target = 0;
    if (word >> 26 == 0x25) {  // bl
        int64_t distance = (int64_t)((uint64_t)word << 38) >> 36;
        *target = return_address - 4 + (uint64_t)distance;
        return true;
    }
    return (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800;  // blr, blraa and kin
}

static bool is_jump(const uint8_t code[8]) {
    uint32_t word = instruction(code);
    if ((word & 0xffffff3f) == 0xd503241f) word = instruction(code + 4);  // bti
    return word >> 26 == 0x05 || (word & 0x9f00001f) == 0x90000010;       // b, or a PLT entry's adrp x16
}

/// The signed field of `bits` bits at bit `low`, in instructions, as bytes.
static int64_t distance(uint32_t word, unsigned low, unsigned bits) {
    return (int64_t)((uint64_t)word << (64 - low - bits)) >> (64 - bits) << 2;
}

static bool jump_target(const uint8_t code[16], uint64_t address, uint64_t *target, bool *is_slot) {
    uint32_t word = instruction(code);
    if ((word & 0xffffff3f) == 0xd503241f) {  // bti
        code += 4;
        address += 4;
        word = instruction(code);
    }
    *is_slot = word >> 26 != 0x05;
    if (!*is_slot) {  // b
        *target = address + (uint64_t)distance(word, 0, 26);
        return true;
    }
    const uint32_t load = instruction(code + 4);
    if ((word & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) return false;
    // adrp x16, page  ldr x17, [x16, #k]
    const uint64_t page = (uint64_t)(distance(word, 5, 19) << 12) | (uint64_t)(word >> 29 & 3) << 12;
    *target = (address & ~UINT64_C(4095)) + page + (uint64_t)(load >> 10 & 0xfff) * 8;
    return true;
}

static bool may_jump_away(const uint8_t *code, uint64_t length) {
    for (uint64_t at = 0; at + 4 <= length; at += 4) {
        const uint32_t word = instruction(code + at);
        int64_t to = 0;
        if ((word & 0xfffffc1f) == 0xd61f0000 || (word & 0xfefff800) == 0xd61f0800) return true;  // br, braa and kin
        if (word >> 26 == 0x05) to = distance(word, 0, 26);                                       // b
        if (word >> 24 == 0x54 || (word & 0x7e000000) == 0x34000000) to = distance(word, 5, 19);  // b.cond, cbz
        if ((word & 0x7e000000) == 0x36000000) to = distance(word, 5, 14);                        // tbz, tbnz
        if ((int64_t)at + to < 0 || (int64_t)at + to >= (int64_t)length) return true;
    }
    return false;
}

// mov x8, #SYS_rt_sigreturn  svc #0
static bool is_signal_return(const uint8_t code[12]) {
    return instruction(code) == 0xd2801168 && instruction(code + 4) == 0xd4000001;
}

static unsigned system_call_length(const uint8_t code[8]) { return instruction(code) == 0xd4000001 ? 4 : 0; }

static const stall_architecture description = {
    .register_count = 33,
    .stack_pointer = SP,
    .frame_pointer = X29,
    .program_counter = PC,
    .return_address = X30,
    .async_context = X22,
    .saved_count = 12,
    .saved = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, X29, X30},
    .system_call_arguments = {0, 1, 2, 3, 4, 5},
    .address_mask = (UINT64_C(1) << 48) - 1,
    .frame_size = frame_size,
    .examine_code = examine_code,
    .call_target = call_target,
    .is_jump = is_jump,
    .jump_target = jump_target,
    .may_jump_away = may_jump_away,
    .is_signal_return = is_signal_return,
    .system_call_length = system_call_length,
};
const stall_architecture *const stall_architecture_arm64 = &description;

#if defined(__aarch64__)
const stall_architecture *const stall_native_architecture = &description;

void stall_registers_from_context(stall_registers *registers, const void *context) {
    const mcontext_t *saved = &((const ucontext_t *)context)->uc_mcontext;
    for (unsigned i = 0; i <= X30; i++) registers->value[i] = saved->regs[i];
    registers->value[SP] = saved->sp;
    registers->value[PC] = saved->pc;
    registers->known = (UINT64_C(1) << 33) - 1;
}
#endif
