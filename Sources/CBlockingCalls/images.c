#define _GNU_SOURCE
#include "images.h"

#include <link.h>
#include <string.h>

typedef struct {
    const char *name;
    bool is_of_testing;
    uintptr_t start, end;
} image;

static image images[] = {{.name = "libswiftCore.so"}, {.name = "libswift_Concurrency.so"},
                         {.name = "libTesting.so", .is_of_testing = true}};
enum { IMAGES = sizeof images / sizeof *images };

static int find(struct dl_phdr_info *loaded, size_t size, void *context) {
    (void)size, (void)context;
    const char *slash = strrchr(loaded->dlpi_name, '/');
    for (int i = 0; slash && i < IMAGES; i++) {
        if (strcmp(slash + 1, images[i].name) != 0) continue;
        uintptr_t end = 0;
        for (int part = 0; part < loaded->dlpi_phnum; part++) {
            const ElfW(Phdr) *header = &loaded->dlpi_phdr[part];
            const uintptr_t part_end = loaded->dlpi_addr + header->p_vaddr + header->p_memsz;
            if (header->p_type == PT_LOAD && part_end > end) end = part_end;
        }
        images[i].start = loaded->dlpi_addr;
        __atomic_store_n(&images[i].end, end, __ATOMIC_RELEASE);
    }
    return 0;
}

void images_find(void) { dl_iterate_phdr(find, NULL); }

static const image *image_at(uintptr_t address) {
    for (int i = 0; i < IMAGES; i++) {
        const uintptr_t end = __atomic_load_n(&images[i].end, __ATOMIC_ACQUIRE);
        if (address < end && address >= images[i].start) return &images[i];
    }
    return NULL;
}

bool images_are_of_runtime(uintptr_t address) {
    const image *image = image_at(address);
    return image && !image->is_of_testing;
}

// Of a lock in the sense of pthreads.
static bool is_lock(const char *call) { return strncmp(call, "pthread_", 8) == 0; }

bool images_own_call(const char *call, uintptr_t caller, bool is_in_test) {
    const image *image = image_at(caller);
    return image && (image->is_of_testing ? is_in_test : is_lock(call));
}
