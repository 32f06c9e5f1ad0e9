#define _GNU_SOURCE
#include "stall_prefetch.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stall_fork.h"

typedef struct {
    stall_range *ranges;
    size_t capacity, count;
} listing;

static int add_image(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    listing *list = context;
    uint64_t header = 0, end = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) header = info->dlpi_phdr[i].p_vaddr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && header >= segment->p_vaddr && header - segment->p_vaddr < segment->p_filesz)
            end = segment->p_vaddr + segment->p_filesz;
    }
    if (header == 0 || end == 0) return 0;
    if (list->count < list->capacity)
        list->ranges[list->count] = (stall_range){info->dlpi_addr + header, end - header};
    list->count++;
    return 0;
}

size_t stall_unwind_tables(stall_range *ranges, size_t capacity) {
    listing list = {ranges, capacity, 0};
    stall_fork_defer();
    dl_iterate_phdr(add_image, &list);
    stall_fork_allow();
    return list.count;
}

// Outside of dl_iterate_phdr, whose lock the app's exceptions and dlopen need. An image that is unloaded meanwhile does
// no harm: the kernel only reads ahead.
void stall_unwind_tables_prefetch(void) {
    enum { IMAGE_LIMIT = 1024 };
    const int saved = errno;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    stall_range *ranges = calloc(IMAGE_LIMIT, sizeof *ranges);
    if (!ranges) return;
    const size_t count = stall_unwind_tables(ranges, IMAGE_LIMIT);
    for (size_t i = 0; i < count && i < IMAGE_LIMIT; i++) {
        const uint64_t start = ranges[i].start / page * page;
        madvise((void *)(uintptr_t)start, ranges[i].start + ranges[i].length - start, MADV_WILLNEED);
    }
    free(ranges);
    errno = saved;
}
