// Lists the numeric entries of a directory in /proc, such as threads and descriptors. Without opendir, which allocates.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int directory;
    long at, length;
    _Alignas(8) char entries[4096];
} stall_numbers;

/// Starts at the first entry; false with errno if the directory cannot be opened.
bool stall_numbers_open(stall_numbers *_Nonnull numbers, const char *_Nonnull path);
/// The next number; -1 at the end, or with errno if the kernel refuses to continue.
int32_t stall_numbers_next(stall_numbers *_Nonnull numbers);
void stall_numbers_close(stall_numbers *_Nonnull numbers);
