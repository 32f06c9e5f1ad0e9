// Reads this process's memory through the kernel, so that an unmapped address gives a short count, not a crash.
#pragma once
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/// Copies up to `length` bytes from `address`. Returns how many bytes from the start were readable.
__attribute__((visibility("hidden"))) size_t stall_read_memory(void *to, uint64_t address, size_t length);

static inline bool stall_read_exactly(void *to, uint64_t address, size_t length) {
    return stall_read_memory(to, address, length) == length;
}
