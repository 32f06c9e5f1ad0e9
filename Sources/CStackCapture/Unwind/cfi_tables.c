#define _GNU_SOURCE
#include "cfi_tables.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stall_fork.h"
#include "stall_memory.h"

enum {  // DW_EH_PE: pointer encodings
    ENCODING_OMIT = 0xff,
    ENCODING_FORMAT = 0x0f,
    ENCODING_BASE = 0x70,
    ENCODING_PC_RELATIVE = 0x10,
    ENCODING_DATA_RELATIVE = 0x30,
    ENCODING_INDIRECT = 0x80,
    ENCODING_TABLE = 0x3b,  // data-relative, signed 4 bytes: the only searchable one
};

uint64_t stall_cfi_encoded_pointer(byte_cursor *cursor, uint8_t encoding, uint64_t data_base) {
    if (encoding == ENCODING_OMIT) return 0;
    uint64_t base = 0;
    switch (encoding & ENCODING_BASE) {
    case 0: break;
    case ENCODING_PC_RELATIVE: base = cursor->address; break;
    case ENCODING_DATA_RELATIVE: base = data_base; break;
    default: cursor->failed = true; return 0;
    }
    uint64_t value = 0;
    switch (encoding & ENCODING_FORMAT) {
    case 0x00: case 0x04: case 0x0c: value = cursor_integer(cursor, 8); break;
    case 0x01: value = cursor_uleb(cursor); break;
    case 0x02: value = cursor_integer(cursor, 2); break;
    case 0x03: value = cursor_integer(cursor, 4); break;
    case 0x09: value = (uint64_t)cursor_sleb(cursor); break;
    case 0x0a: value = (uint64_t)cursor_signed(cursor, 2); break;
    case 0x0b: value = (uint64_t)cursor_signed(cursor, 4); break;
    default: cursor->failed = true; return 0;
    }
    if (value != 0) value += base;
    if (encoding & ENCODING_INDIRECT && !stall_read_exactly(&value, value, 8)) cursor->failed = true;
    return value;
}

bool stall_cfi_tables_add(cfi_tables *tables, uint64_t start, uint64_t end, uint64_t header) {
    if (header < start || header >= end || end - header < 12) return false;
    uint8_t bytes[32] = {0};
    size_t size = stall_read_memory(bytes, header, sizeof bytes);
    byte_cursor cursor = {bytes, bytes + size, header, false};
    uint8_t version = (uint8_t)cursor_integer(&cursor, 1);
    uint8_t frame_encoding = (uint8_t)cursor_integer(&cursor, 1);
    uint8_t count_encoding = (uint8_t)cursor_integer(&cursor, 1);
    uint8_t table_encoding = (uint8_t)cursor_integer(&cursor, 1);
    stall_cfi_encoded_pointer(&cursor, frame_encoding & 0x7f, header);
    uint64_t count = stall_cfi_encoded_pointer(&cursor, count_encoding, header);
    if (version != 1 || table_encoding != ENCODING_TABLE || cursor.failed || count == 0) return false;
    if (cursor.address > end || count > (end - cursor.address) / 8) return false;

    if (tables->image_count == IMAGE_LIMIT) {  // rare; nothing cached from these images can be checked any more
        tables->image_count = 0;
        tables->is_outdated = true;
    }
    tables->added_count++;
    cfi_image *image = &tables->images[tables->image_count];
    image->start = start;
    image->end = end;
    image->header = header;
    image->table = cursor.address;
    image->entry_count = count;
    uint64_t head_size = end - start < IMAGE_HEAD_SIZE ? end - start : IMAGE_HEAD_SIZE;
    image->head_size = (uint32_t)head_size;
    if (!stall_read_exactly(image->head, start, head_size)) return false;
    tables->image_count++;
    return true;
}

bool stall_cfi_tables_refresh(cfi_tables *tables) {
    if (tables->image_count == 0 && !tables->is_outdated) return false;
    struct iovec local[IMAGE_LIMIT], remote[IMAGE_LIMIT];
    size_t wanted = 0;
    for (uint32_t i = 0; i < tables->image_count; i++) {
        const cfi_image *image = &tables->images[i];
        local[i] = (struct iovec){tables->refreshed_heads[i], image->head_size};
        remote[i] = (struct iovec){(void *)(uintptr_t)image->start, image->head_size};
        wanted += image->head_size;
    }
    ssize_t count = process_vm_readv(getpid(), local, tables->image_count, remote, tables->image_count, 0);
    // Where a sandbox refuses the call, one read after the other.
    for (uint32_t i = 0; count < 0 && i < tables->image_count; i++) {
        if (!stall_read_exactly(local[i].iov_base, tables->images[i].start, local[i].iov_len)) break;
        if (i + 1 == tables->image_count) count = (ssize_t)wanted;
    }
    bool is_current = count == (ssize_t)wanted && !tables->is_outdated;
    for (uint32_t i = 0; is_current && i < tables->image_count; i++) {
        const cfi_image *image = &tables->images[i];
        is_current = memcmp(image->head, tables->refreshed_heads[i], image->head_size) == 0;
    }
    if (!is_current) {
        tables->image_count = 0;
        tables->common.address = 0;
        tables->is_outdated = false;
    }
    return !is_current;
}

// glibc 2.35 has a lock-free lookup; a weak reference, because older versions lack it. The layout is its ABI.
typedef struct {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *link_map;
    void *eh_frame_header;
    unsigned long long reserved[7];
} loader_object;
extern int find_loaded_object(void *address, loader_object *result) __asm__("_dl_find_object") __attribute__((weak));

typedef struct {
    uint64_t address, start, end, header;
} loader_query;

// Sets the image of these segments, if it contains the address.
static bool examine_segments(const ElfW(Phdr) *segments, unsigned count, uint64_t base, loader_query *query) {
    uint64_t start = UINT64_MAX, end = 0, header = 0;
    for (unsigned i = 0; i < count; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        uint64_t begin = base + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME) header = begin;
        if (segment->p_type != PT_LOAD) continue;
        if (begin < start) start = begin;
        if (begin + segment->p_memsz > end) end = begin + segment->p_memsz;
    }
    if (query->address < start || query->address >= end) return false;
    *query = (loader_query){query->address, start, end, header};
    return true;
}

static int examine_image(struct dl_phdr_info *image, size_t size, void *argument) {
    (void)size;
    return examine_segments(image->dlpi_phdr, image->dlpi_phnum, image->dlpi_addr, argument);
}

// The executable itself, from the kernel's auxiliary vector.
static bool examine_program(loader_query *query) {
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const unsigned count = (unsigned)getauxval(AT_PHNUM);
    uint64_t base = 0;
    if (!segments) return false;
    for (unsigned i = 0; i < count; i++) {
        if (segments[i].p_type == PT_PHDR) base = (uint64_t)segments - segments[i].p_vaddr;
    }
    return examine_segments(segments, count, base, query);
}

static bool ask_loader(loader_query *query) {
    if (find_loaded_object) {
        loader_object object;
        if (find_loaded_object((void *)(uintptr_t)query->address, &object) != 0) return false;
        query->start = (uint64_t)object.map_start;
        query->end = (uint64_t)object.map_end;
        query->header = (uint64_t)object.eh_frame_header;
        // If the executable has holes between its segments, glibc returns only the segment with the address, without
        // its tables: on arm64 segments are 64 KiB apart, and pages mostly have 4.
        if (query->header < query->start || query->header >= query->end) return examine_program(query);
        return true;
    }
    // Takes a lock of the loader, which a thread holds only briefly unless it blocks in its own callback.
    stall_fork_defer();
    const bool is_found = dl_iterate_phdr(examine_image, query) != 0;
    stall_fork_allow();
    return is_found;
}

static bool find_other(const cfi_tables *tables, loader_query *query) {
    uint32_t low = 0, high = tables->other_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (tables->others[middle].start <= query->address) low = middle + 1; else high = middle;
    }
    if (low == 0) return false;
    const stall_unwind_image *image = &tables->others[low - 1];
    *query = (loader_query){query->address, image->start, image->end, image->eh_frame_header};
    return true;
}

const cfi_image *stall_cfi_image_containing(cfi_tables *tables, uint64_t address) {
    for (uint32_t i = 0; i < tables->image_count; i++) {
        const cfi_image *image = &tables->images[i];
        if (address >= image->start && address < image->end) return image;
    }
    loader_query query = {.address = address};
    const bool is_found = tables->is_of_other_process ? find_other(tables, &query) : ask_loader(&query);
    if (!is_found || address < query.start || address >= query.end) return NULL;
    if (!stall_cfi_tables_add(tables, query.start, query.end, query.header)) return NULL;
    return &tables->images[tables->image_count - 1];
}

typedef struct {
    int32_t location, entry;  // both relative to the header
} table_entry;

// The last entry at or before `address`: binary search, then one read of the rest. `next` is where the following
// entry's function begins.
static bool search_table(const cfi_image *image, uint64_t address, uint64_t *entry, uint64_t *next) {
    int64_t key = (int64_t)(address - image->header);
    uint64_t low = 0, high = image->entry_count;
    table_entry block[65];
    while (high - low > 64) {
        uint64_t middle = low + (high - low) / 2;
        if (!stall_read_exactly(block, image->table + middle * 8, 8)) return false;
        if (block[0].location <= key) low = middle; else high = middle;
    }
    uint64_t count = high - low + (high < image->entry_count);
    if (!stall_read_exactly(block, image->table + low * 8, count * 8)) return false;
    uint64_t found = count;
    for (uint64_t i = 0; i < count && block[i].location <= key; i++) found = i;
    if (found == count) {  // before the first one
        *next = image->header + (uint64_t)(int64_t)block[0].location;
        return false;
    }
    *entry = image->header + (uint64_t)(int64_t)block[found].entry;
    *next = found + 1 < count ? image->header + (uint64_t)(int64_t)block[found + 1].location : image->end;
    return true;
}

// Reads the CIE or FDE at `address` into `bytes` and sets `cursor` after its length.
static bool read_entry(const cfi_image *image, uint64_t address, uint8_t *bytes, byte_cursor *cursor) {
    if (address < image->start || address >= image->end) return false;
    size_t size = stall_read_memory(bytes, address, 256);
    uint32_t length;
    if (size < 8) return false;
    memcpy(&length, bytes, 4);
    uint64_t total = (uint64_t)length + 4;
    if (length < 4 || total > ENTRY_SIZE_LIMIT || total > image->end - address) return false;
    if (total > size && !stall_read_exactly(bytes, address, total)) return false;
    *cursor = (byte_cursor){bytes + 4, bytes + total, address + 4, false};
    return true;
}

static bool parse_common(cfi_tables *tables, const cfi_image *image, uint64_t address) {
    cfi_common *common = &tables->common;
    if (common->address == address) return true;
    *common = (cfi_common){0};
    byte_cursor cursor;
    if (!read_entry(image, address, tables->common_bytes, &cursor)) return false;
    uint32_t id = (uint32_t)cursor_integer(&cursor, 4);
    uint8_t version = (uint8_t)cursor_integer(&cursor, 1);
    if (id != 0 || (version != 1 && version != 3)) return false;
    const char *augmentation = (const char *)cursor.at;
    size_t length = strnlen(augmentation, cursor_left(&cursor));
    cursor_skip(&cursor, length + 1);
    common->code_alignment = cursor_uleb(&cursor);
    common->data_alignment = cursor_sleb(&cursor);
    common->return_address = version == 1 ? cursor_integer(&cursor, 1) : cursor_uleb(&cursor);
    if (cursor.failed) return false;
    if (length > 0) {
        if (augmentation[0] != 'z') return false;
        common->has_augmentation = true;
        byte_cursor data = cursor_slice(&cursor, cursor_uleb(&cursor));
        for (size_t i = 1; i < length; i++) {
            switch (augmentation[i]) {
            case 'R': common->pointer_encoding = (uint8_t)cursor_integer(&data, 1); break;
            case 'P': {
                uint8_t encoding = (uint8_t)cursor_integer(&data, 1);
                stall_cfi_encoded_pointer(&data, encoding & ~ENCODING_INDIRECT, 0);
                break;
            }
            case 'L': cursor_skip(&data, 1); break;
            case 'S': common->is_signal_frame = true; break;
            default: break;  // flags without data: 'B' and 'G' on arm64
            }
        }
        if (data.failed) return false;
    }
    if (cursor.failed) return false;
    common->instructions = cursor;
    common->address = address;
    return true;
}

// Reads the entry of the last function that begins before `address`, even if the function ends before it.
static bool find_nearest(cfi_tables *tables, uint64_t address, cfi_function *function, uint64_t *next) {
    const cfi_image *image = stall_cfi_image_containing(tables, address);
    uint64_t entry;
    byte_cursor cursor;
    if (!image || !search_table(image, address, &entry, next)) return false;
    if (!read_entry(image, entry, tables->function_bytes, &cursor)) return false;
    uint64_t field = cursor.address;
    uint64_t distance = cursor_integer(&cursor, 4);
    if (distance == 0 || !parse_common(tables, image, field - distance)) return false;
    const cfi_common *common = &tables->common;
    function->common = common;
    function->start = stall_cfi_encoded_pointer(&cursor, common->pointer_encoding, 0);
    function->end = function->start + stall_cfi_encoded_pointer(&cursor, common->pointer_encoding & ENCODING_FORMAT, 0);
    if (common->has_augmentation) cursor_skip(&cursor, cursor_uleb(&cursor));
    function->instructions = cursor;
    return !cursor.failed && address >= function->start;
}

bool stall_cfi_find_function(cfi_tables *tables, uint64_t address, cfi_function *function) {
    uint64_t next;
    return find_nearest(tables, address, function, &next) && address < function->end;
}

bool stall_cfi_find_gap(cfi_tables *tables, uint64_t address, uint64_t *start, uint64_t *end) {
    const cfi_image *image = stall_cfi_image_containing(tables, address);
    cfi_function function;
    if (!image) return false;
    *end = 0;
    *start = image->start;
    if (find_nearest(tables, address, &function, end)) *start = function.end;
    return address >= *start && address < *end;
}
