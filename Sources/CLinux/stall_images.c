#define _GNU_SOURCE
#include "stall_images.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

typedef struct {
    uint64_t load_address, end_address;
    bool is_main, is_vdso;
    uint32_t build_id_count;
    uint8_t build_id[64];
    char path[4096];
} image_copy;

struct stall_image_list {
    size_t capacity;
    size_t count;  // of the loader's list, also beyond the capacity
    image_copy images[];
};

static bool is_mapped(const struct dl_phdr_info *info, uint64_t address, uint64_t size) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R) || address < segment->p_vaddr) continue;
        uint64_t into = address - segment->p_vaddr;
        if (into <= segment->p_filesz && size <= segment->p_filesz - into) return true;
    }
    return false;
}

/// Walks the notes of one PT_NOTE segment. Every size in it is checked against what is left.
static bool find_build_id(const uint8_t *notes, uint64_t size, uint64_t alignment, image_copy *image) {
    uint64_t mask = alignment == 8 ? 7 : 3;
    uint64_t at = 0;
    while (at < size && size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) header;
        memcpy(&header, notes + at, sizeof header);
        uint64_t name = at + sizeof header;
        uint64_t content = (name + header.n_namesz + mask) & ~mask;
        if (content > size || header.n_descsz > size - content) return false;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0
            && header.n_descsz > 0 && header.n_descsz <= sizeof image->build_id) {
            memcpy(image->build_id, notes + content, header.n_descsz);
            image->build_id_count = header.n_descsz;
            return true;
        }
        at = (content + header.n_descsz + mask) & ~mask;
    }
    return false;
}

static int copy_image(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    stall_image_list *list = context;
    bool is_main = list->count == 0;
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD) continue;
        if (segment->p_vaddr < low) low = segment->p_vaddr;
        if (segment->p_vaddr + segment->p_memsz > high) high = segment->p_vaddr + segment->p_memsz;
    }
    if (low >= high) return 0;
    size_t place = list->count++;
    if (place >= list->capacity) return 0;

    image_copy *image = &list->images[place];
    image->load_address = info->dlpi_addr + low;
    image->end_address = info->dlpi_addr + high;
    image->is_main = is_main;
    unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
    image->is_vdso = vdso != 0 && image->load_address == vdso;
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    size_t length = strnlen(path, sizeof image->path - 1);
    memcpy(image->path, path, length);
    image->path[length] = 0;
    image->build_id_count = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE || !is_mapped(info, segment->p_vaddr, segment->p_filesz)) continue;
        const uint8_t *notes = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
        if (find_build_id(notes, segment->p_filesz, segment->p_align, image)) break;
    }
    return 0;
}

stall_image_list *stall_image_list_create(void) {
    for (size_t capacity = 64;; capacity *= 2) {
        stall_image_list *list = malloc(sizeof *list + capacity * sizeof *list->images);
        if (!list) return NULL;
        list->capacity = capacity;
        list->count = 0;
        dl_iterate_phdr(copy_image, list);
        if (list->count <= capacity) return list;
        free(list);
    }
}

size_t stall_image_list_count(const stall_image_list *list) { return list->count; }

stall_image stall_image_list_get(const stall_image_list *list, size_t index) {
    const image_copy *image = &list->images[index];
    return (stall_image){
        .load_address = image->load_address,
        .end_address = image->end_address,
        .is_main = image->is_main,
        .is_vdso = image->is_vdso,
        .build_id_count = image->build_id_count,
        .build_id = image->build_id,
        .path = image->path,
    };
}

void stall_image_list_free(stall_image_list *list) { free(list); }
