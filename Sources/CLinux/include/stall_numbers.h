// The numbered entries of a directory of /proc, such as threads and descriptors, without opendir: it allocates.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int directory;
    long at, length;
    _Alignas(8) char entries[4096];
} stall_numbers;

/// Begins with the first entry; false with errno when the directory cannot be opened.
bool stall_numbers_open(stall_numbers *_Nonnull numbers, const char *_Nonnull path);
/// The next number; -1 when there is none left, or when the kernel refuses to go on, which leaves errno.
int32_t stall_numbers_next(stall_numbers *_Nonnull numbers);
void stall_numbers_close(stall_numbers *_Nonnull numbers);
