#define _GNU_SOURCE
#include "stall_calls.h"

#include <stdbool.h>
#include <string.h>

#include "image_list.h"
#include "stall_memory.h"

static bool holds(const image_entry *image, uint64_t address, uint64_t size) {
    return address >= image->load_address && address < image->end_address && size <= image->end_address - address;
}

static bool read_exactly(const image_entry *image, uint64_t address, void *to, uint64_t size) {
    return holds(image, address, size) && stall_read_memory(to, address, size) == size;
}

typedef struct {
    int32_t function, entry;  // both relative to the header
} table_entry;

/// The last function in the sorted table of .eh_frame_hdr that does not begin after `address`; 0 without one. Source:
/// Linux Standard Base, "The .eh_frame_hdr section"; all common linkers write these encodings.
static uint64_t function_start(const image_entry *image, uint64_t address) {
    const uint64_t base = image->frame_header, size = image->frame_header_size;
    const uint8_t expected[4] = {1, 0x1b, 0x03, 0x3b};
    uint8_t header[12];
    table_entry block[64];
    if (size < sizeof header || !read_exactly(image, base, header, sizeof header)) return 0;
    if (memcmp(header, expected, sizeof expected) != 0) return 0;
    uint32_t count;
    memcpy(&count, header + 8, sizeof count);
    if (count > (size - sizeof header) / sizeof *block) return 0;
    const uint64_t table = base + sizeof header;
    const int64_t key = (int64_t)(address - base);
    uint64_t low = 0, high = count;
    while (high - low > 64) {  // binary search by single entries, then one read of the rest
        const uint64_t middle = low + (high - low) / 2;
        if (!read_exactly(image, table + middle * sizeof *block, block, sizeof *block)) return 0;
        if (block[0].function <= key) low = middle; else high = middle;
    }
    if (!read_exactly(image, table + low * sizeof *block, block, (high - low) * sizeof *block)) return 0;
    uint64_t start = 0;
    for (uint64_t i = 0; i < high - low && block[i].function <= key; i++) {
        start = base + (uint64_t)(int64_t)block[i].function;
    }
    return start;
}

#if defined(__x86_64__)
/// The target of the `call rel32` that ends at `address`; 0 for other instructions.
static uint64_t direct_call_target(const image_entry *image, uint64_t address) {
    uint8_t code[5];
    if (!read_exactly(image, address - 5, code, sizeof code) || code[0] != 0xe8) return 0;
    int32_t distance;
    memcpy(&distance, code + 1, sizeof distance);
    return address + (uint64_t)(int64_t)distance;
}

/// `jmp *target(%rip)`, optionally after `endbr64` and `bnd`: a linkage stub, which belongs to no function.
static bool is_stub(const uint8_t *code) {
    const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (memcmp(code, endbr64, sizeof endbr64) == 0) code += sizeof endbr64;
    if (*code == 0xf2) code++;
    return code[0] == 0xff && code[1] == 0x25;
}
#else
static uint64_t direct_call_target(const image_entry *image, uint64_t address) {
    (void)image, (void)address;
    return 0;
}
static bool is_stub(const uint8_t *code) {
    (void)code;
    return true;
}
#endif

static void read_call(const image_entry *image, stall_call *call) {
    uint8_t code[8];
    call->function = function_start(image, call->address);
    const uint64_t target = direct_call_target(image, call->address + 1);
    if (target == 0 || !read_exactly(image, target, code, sizeof code) || is_stub(code)) return;
    if (function_start(image, target) == target) call->entered = target;
}

void stall_calls_read(stall_call *calls, size_t count) {
    for (size_t i = 0; i < count; i++) calls[i].function = calls[i].entered = 0;
    stall_image_list *list = stall_image_list_create();
    for (size_t i = 0; list && i < count; i++) {
        for (size_t place = 0; place < list->count; place++) {
            const image_entry *image = &list->images[place];
            if (!image->is_unloaded && holds(image, calls[i].address, 1)) read_call(image, &calls[i]);
        }
    }
    stall_image_list_free(list);
}
