#define _GNU_SOURCE
#include "stall_calls.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
    stall_call *calls;
    size_t count;
} call_list;

/// The bytes at `address` when all of them are in one readable segment of the image.
static const uint8_t *mapped(const struct dl_phdr_info *info, uint64_t address, uint64_t size) {
    uint64_t offset = address - info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R) || offset < segment->p_vaddr) continue;
        uint64_t into = offset - segment->p_vaddr;
        if (into <= segment->p_filesz && size <= segment->p_filesz - into) return (const uint8_t *)address;
    }
    return NULL;
}

/// The last function in the sorted table of .eh_frame_hdr that does not begin after `address`; 0 without one.
/// Source: Linux Standard Base, "The .eh_frame_hdr section"; every linker in use writes these encodings.
static uint64_t function_start(const struct dl_phdr_info *info, uint64_t address) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_GNU_EH_FRAME || segment->p_memsz < 12) continue;
        uint64_t base = info->dlpi_addr + segment->p_vaddr;
        const uint8_t *header = mapped(info, base, segment->p_memsz);
        const uint8_t expected[4] = {1, 0x1b, 0x03, 0x3b};
        if (!header || memcmp(header, expected, sizeof expected) != 0) return 0;
        uint32_t count;
        memcpy(&count, header + 8, sizeof count);
        if (count > (segment->p_memsz - 12) / 8) return 0;
        uint32_t low = 0, high = count;
        uint64_t start = 0;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            int32_t distance;
            memcpy(&distance, header + 12 + (uint64_t)middle * 8, sizeof distance);
            uint64_t candidate = base + (uint64_t)(int64_t)distance;
            if (candidate <= address) {
                start = candidate;
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return start;
    }
    return 0;
}

#if defined(__x86_64__)
/// The target of the `call rel32` that ends at `address`; 0 for every other instruction.
static uint64_t direct_call_target(const struct dl_phdr_info *info, uint64_t address) {
    const uint8_t *code = mapped(info, address - 5, 5);
    if (!code || code[0] != 0xe8) return 0;
    int32_t distance;
    memcpy(&distance, code + 1, sizeof distance);
    return address + (uint64_t)(int64_t)distance;
}

/// `jmp *somewhere(%rip)`, behind `endbr64` and `bnd` or not: a linkage stub, which is nobody's function.
static bool is_stub(const uint8_t *code) {
    const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (memcmp(code, endbr64, sizeof endbr64) == 0) code += sizeof endbr64;
    if (*code == 0xf2) code++;
    return code[0] == 0xff && code[1] == 0x25;
}
#else
static uint64_t direct_call_target(const struct dl_phdr_info *info, uint64_t address) {
    (void)info, (void)address;
    return 0;
}
static bool is_stub(const uint8_t *code) {
    (void)code;
    return true;
}
#endif

static int read_calls(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    call_list *list = context;
    for (size_t i = 0; i < list->count; i++) {
        stall_call *call = &list->calls[i];
        if (!mapped(info, call->address, 1)) continue;
        call->function = function_start(info, call->address);
        uint64_t target = direct_call_target(info, call->address + 1);
        const uint8_t *code = target ? mapped(info, target, 8) : NULL;
        if (code && !is_stub(code) && function_start(info, target) == target) call->entered = target;
    }
    return 0;
}

void stall_calls_read(stall_call *calls, size_t count) {
    for (size_t i = 0; i < count; i++) calls[i].function = calls[i].entered = 0;
    call_list list = {.calls = calls, .count = count};
    dl_iterate_phdr(read_calls, &list);
}
