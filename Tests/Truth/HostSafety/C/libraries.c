// Libraries that are unloaded, and what they leave behind.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "host_safety.h"

// The flag is in the table of the segment PT_DYNAMIC.
static void clear_flag(uint8_t *image, size_t size, const Elf64_Phdr *segment) {
    for (uint64_t at = segment->p_offset; at + sizeof(Elf64_Dyn) <= size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn *entry = (Elf64_Dyn *)(void *)(image + at);
        if (entry->d_tag == DT_NULL) return;
        if (entry->d_tag == DT_FLAGS_1) entry->d_un.d_val &= ~(uint64_t)DF_1_NODELETE;
    }
}

void host_allow_unloading(void *image, size_t size) {
    const Elf64_Ehdr *header = image;
    if (size < sizeof *header) return;
    for (int i = 0; i < header->e_phnum; i++) {
        const uint64_t at = header->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
        if (at + sizeof(Elf64_Phdr) > size) return;
        const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)((uint8_t *)image + at);
        if (segment->p_type == PT_DYNAMIC) clear_flag(image, size, segment);
    }
}

bool host_handler_is_mapped(int number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) return true;
    if (!(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) return true;
    unsigned char resident;
    void *page = (void *)((uintptr_t)action.sa_sigaction & ~(uintptr_t)4095);
    return mincore(page, 1, &resident) == 0 || errno != ENOMEM;
}
