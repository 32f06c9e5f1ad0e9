// Each image is read once and through the kernel: its headers and notes are in a file mapping, and reading the mapping
// of a truncated file raises SIGBUS. The result is cached as long as the loader lists the image.
#define _GNU_SOURCE
#include "stall_images.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "image_list.h"
#include "stall_fork.h"
#include "stall_memory.h"

enum { SEGMENT_LIMIT = 64, NOTE_LIMIT = 64, PATH_LIMIT = 4096, UNLOADED_LIMIT = 32 };

// The previous list, or NULL while a list is being made: then another thread reads every image again.
static stall_image_list *known;

typedef struct {
    stall_image_list *list;
    const stall_image_list *known;
} listing;

/// Searches the notes of one PT_NOTE segment. Every size is checked against the remaining bytes.
static bool find_build_id(uint64_t notes, uint64_t size, uint64_t alignment, image_entry *image) {
    const uint64_t mask = alignment == 8 ? 7 : 3;
    uint64_t at = 0;
    for (int count = 0; count < NOTE_LIMIT && at < size && size - at >= sizeof(ElfW(Nhdr)); count++) {
        struct {
            ElfW(Nhdr) header;
            char name[4];
        } note = {0};
        if (stall_read_memory(&note, notes + at, sizeof note) < sizeof note.header) return false;
        const uint64_t content = (at + sizeof note.header + note.header.n_namesz + mask) & ~mask;
        const uint64_t length = note.header.n_descsz;
        if (content > size || length > size - content) return false;
        if (note.header.n_type == NT_GNU_BUILD_ID && note.header.n_namesz == 4 && memcmp(note.name, "GNU", 4) == 0
            && length > 0 && length <= sizeof image->build_id
            && stall_read_memory(image->build_id, notes + content, length) == length) {
            image->build_id_count = (uint32_t)length;
            return true;
        }
        at = (content + length + mask) & ~mask;
    }
    return false;
}

static bool read_image(const struct dl_phdr_info *info, image_entry *image) {
    ElfW(Phdr) segments[SEGMENT_LIMIT];
    size_t count = info->dlpi_phnum < SEGMENT_LIMIT ? info->dlpi_phnum : SEGMENT_LIMIT;
    count = stall_read_memory(segments, (uintptr_t)info->dlpi_phdr, count * sizeof *segments) / sizeof *segments;
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type == PT_GNU_EH_FRAME) {
            image->frame_header = info->dlpi_addr + segment->p_vaddr;
            image->frame_header_size = segment->p_memsz;
        }
        if (segment->p_type != PT_LOAD) continue;
        if (segment->p_vaddr < low) low = segment->p_vaddr;
        if (segment->p_vaddr + segment->p_memsz > high) high = segment->p_vaddr + segment->p_memsz;
    }
    if (low >= high) return false;
    image->load_address = info->dlpi_addr + low;
    image->end_address = info->dlpi_addr + high;
    const unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
    image->is_vdso = vdso != 0 && image->load_address == vdso;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type != PT_NOTE) continue;
        if (find_build_id(info->dlpi_addr + segment->p_vaddr, segment->p_filesz, segment->p_align, image)) break;
    }
    return true;
}

static const image_entry *find_known(
    const stall_image_list *list, const image_entry *wanted, const char *path, size_t place
) {
    for (size_t i = 0; list && i < list->count; i++) {  // nearly always at the same index
        const image_entry *image = &list->images[(place + i) % list->count];
        if (image->base == wanted->base && image->headers == wanted->headers
            && strcmp(stall_image_path(list, image), path) == 0) return image;
    }
    return NULL;
}

static int list_image(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    listing *listing = context;
    stall_image_list *list = listing->list;
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    char path[PATH_LIMIT];
    const size_t length = strnlen(name, sizeof path - 1);
    memcpy(path, name, length);
    path[length] = 0;

    image_entry image = {.base = info->dlpi_addr, .headers = (uintptr_t)info->dlpi_phdr};
    const image_entry *before = find_known(listing->known, &image, path, list->count);
    // After an unload it may be another image at the same address. If it cannot be read any more, it is the same.
    if (before && listing->known->unload_count == info->dlpi_subs) {
        image = *before;
    } else if (!read_image(info, &image)) {
        if (!before) return 0;
        image = *before;
    }
    image.is_main = list->count == 0;
    image.is_unloaded = false;
    list->load_count = info->dlpi_adds;
    list->unload_count = info->dlpi_subs;
    const size_t place = list->count++, text = list->text_size;
    list->text_size += length + 1;
    if (place >= list->capacity || list->text_size > list->text_capacity) return 0;
    image.path = (uint32_t)text;
    list->images[place] = image;
    memcpy(stall_image_text(list) + text, path, length + 1);
    return 0;
}

// Whether the range of an image is in use: by itself, or by another one.
static bool is_taken(const stall_image_list *list, const image_entry *image) {
    for (size_t i = 0; i < list->count; i++) {
        const image_entry *other = &list->images[i];
        if (image->load_address < other->end_address && other->load_address < image->end_address) return true;
    }
    return false;
}

// Those that were unloaded last come first. There is room.
static void add_unloaded(stall_image_list *list, const stall_image_list *before) {
    unsigned added = 0;
    for (size_t i = 0; before && i < before->count && added < UNLOADED_LIMIT; i++) {
        const image_entry *image = &before->images[i];
        if (is_taken(list, image)) continue;
        const char *path = stall_image_path(before, image);
        const size_t size = strlen(path) + 1, text = list->text_size;
        memcpy(stall_image_text(list) + text, path, size);
        list->text_size += size;
        list->images[list->count] = *image;
        list->images[list->count].path = (uint32_t)text;
        list->images[list->count++].is_unloaded = true;
        added++;
    }
}

static size_t list_bytes(size_t capacity, size_t text_capacity) {
    return sizeof(stall_image_list) + capacity * sizeof(image_entry) + text_capacity;
}

static void keep(const stall_image_list *list, stall_image_list *before) {
    const size_t size = list_bytes(list->capacity, list->text_capacity);
    stall_image_list *copy = malloc(size);
    if (copy) {
        memcpy(copy, list, size);
        free(before);
        before = copy;
    }
    free(__atomic_exchange_n(&known, before, __ATOMIC_ACQ_REL));
}

stall_image_list *stall_image_list_create(void) {
    stall_image_list *before = __atomic_exchange_n(&known, NULL, __ATOMIC_ACQ_REL), *list;
    for (size_t capacity = 64, text = 8192;;) {
        list = malloc(list_bytes(capacity, text));
        if (!list) break;
        *list = (stall_image_list){.capacity = capacity, .text_capacity = text};
        listing listing = {list, before};
        stall_fork_defer();
        dl_iterate_phdr(list_image, &listing);
        stall_fork_allow();
        const size_t most = list->count + UNLOADED_LIMIT;
        const size_t longest = list->text_size + (before ? before->text_size : 0);
        if (most <= capacity && longest <= text) break;
        while (capacity < most) capacity *= 2;
        while (text < longest) text *= 2;
        free(list);
    }
    if (list) add_unloaded(list, before);
    if (list) keep(list, before); else free(before);
    return list;
}

static int read_load_count(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    *(unsigned long long *)context = info->dlpi_adds;
    return 1;  // the counts are the same in every entry
}

bool stall_image_list_remember(void) {
    static unsigned long long remembered;  // of the recorder's thread, or a race for one list more
    unsigned long long now = 0;
    stall_fork_defer();
    dl_iterate_phdr(read_load_count, &now);
    stall_fork_allow();
    if (now == __atomic_load_n(&remembered, __ATOMIC_RELAXED)) return false;
    __atomic_store_n(&remembered, now, __ATOMIC_RELAXED);
    stall_image_list_free(stall_image_list_create());
    return true;
}

size_t stall_image_list_count(const stall_image_list *list) { return list->count; }

stall_image stall_image_list_get(const stall_image_list *list, size_t index) {
    const image_entry *image = &list->images[index];
    return (stall_image){
        .load_address = image->load_address,
        .end_address = image->end_address,
        .is_main = image->is_main,
        .is_vdso = image->is_vdso,
        .build_id_count = image->build_id_count,
        .build_id = image->build_id,
        .path = stall_image_path(list, image),
    };
}

void stall_image_list_free(stall_image_list *list) { free(list); }
