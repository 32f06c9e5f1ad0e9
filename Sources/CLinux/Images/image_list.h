// A copy of the loader's list, in one piece of memory: the entries, and behind them their paths.
#pragma once
#include "stall_images.h"

typedef struct {
    uint64_t base, headers;  ///< as the loader gives them: with the path they tell one image from another
    uint64_t load_address, end_address;
    uint64_t frame_header, frame_header_size;  ///< .eh_frame_hdr; 0 without one
    bool is_main, is_vdso;
    uint32_t path;  ///< where it begins in the text
    uint32_t build_id_count;
    uint8_t build_id[64];
} image_entry;

struct stall_image_list {
    size_t capacity, count;            ///< `count` is of the loader's list, also beyond the capacity
    size_t text_capacity, text_size;
    unsigned long long unload_count;   ///< how many images the loader had unloaded
    image_entry images[];
};

static inline char *stall_image_text(const stall_image_list *list) {
    return (char *)(uintptr_t)&list->images[list->capacity];
}
static inline const char *stall_image_path(const stall_image_list *list, const image_entry *image) {
    return stall_image_text(list) + image->path;
}
