// A copy of the loader's list of images. Nothing in it points into an image, which may be unloaded.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stall_image {
    uint64_t load_address;         ///< the lowest mapped address of its segments
    uint64_t end_address;          ///< one past the highest
    bool is_main;                  ///< the executable; its path is empty, because the loader does not know it
    bool is_vdso;                  ///< the kernel's vDSO, which has no file
    uint32_t build_id_count;       ///< bytes of the build ID note; 0 without one
    const uint8_t *_Nonnull build_id;
    const char *_Nonnull path;     ///< as passed to the loader, truncated to 4095 bytes
} stall_image;

typedef struct stall_image_list stall_image_list;

/// Copies the list; the executable comes first, and last what was in earlier lists and has been unloaded since, unless
/// something else is loaded there: at most 32 images. Nothing is allocated under the loader's lock, nothing is read through a
/// mapping, and images from earlier lists are not read again. NULL without memory.
stall_image_list *_Nullable stall_image_list_create(void);
/// Makes a list if the loader has loaded anything since the last one, so that it is remembered. Returns whether it has.
bool stall_image_list_remember(void);
size_t stall_image_list_count(const stall_image_list *_Nonnull list);
/// The result points into the list. `index` must be below the count.
stall_image stall_image_list_get(const stall_image_list *_Nonnull list, size_t index);
void stall_image_list_free(stall_image_list *_Nullable list);
