// A copy of the loader's list in one block of memory: the entries, followed by their paths.
#pragma once
#include "stall_images.h"

typedef struct {
    uint64_t base, headers;  ///< from the loader: together with the path they identify an image
    uint64_t load_address, end_address;
    uint64_t frame_header, frame_header_size;  ///< .eh_frame_hdr; 0 without one
    bool is_main, is_vdso, is_unloaded;
    uint32_t path;  ///< its offset in the text
    uint32_t build_id_count;
    uint8_t build_id[64];
} image_entry;

struct stall_image_list {
    size_t capacity, count;            ///< while it is made, `count` may be beyond the capacity
    unsigned long long load_count;     ///< how many images the loader had loaded by then
    size_t text_capacity, text_size;
    unsigned long long unload_count;   ///< how many images the loader had unloaded by then
    image_entry images[];
};

static inline char *stall_image_text(const stall_image_list *list) {
    return (char *)(uintptr_t)&list->images[list->capacity];
}
static inline const char *stall_image_path(const stall_image_list *list, const image_entry *image) {
    return stall_image_text(list) + image->path;
}
