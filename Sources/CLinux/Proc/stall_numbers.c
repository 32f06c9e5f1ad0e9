#define _GNU_SOURCE
#include "stall_numbers.h"
#include "stall_descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The record of getdents64(2).
typedef struct {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
} directory_entry;

bool stall_numbers_open(stall_numbers *numbers, const char *path) {
    numbers->at = numbers->length = 0;
    numbers->directory = stall_descriptor_open_to_read(path, O_DIRECTORY);
    return numbers->directory >= 0;
}

int32_t stall_numbers_next(stall_numbers *numbers) {
    for (;;) {
        if (numbers->at >= numbers->length) {
            numbers->at = 0;
            numbers->length = syscall(SYS_getdents64, numbers->directory, numbers->entries, sizeof numbers->entries);
            if (numbers->length <= 0) return -1;
        }
        const directory_entry *entry = (const directory_entry *)(void *)(numbers->entries + numbers->at);
        numbers->at += entry->length;
        if (entry->name[0] >= '0' && entry->name[0] <= '9') return (int32_t)strtol(entry->name, NULL, 10);
    }
}

void stall_numbers_close(stall_numbers *numbers) { stall_descriptor_end(numbers->directory); }
