// Bounds-checked reader for untrusted bytes. Reading past the end sets `failed` and returns zeros.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t address;  ///< the address of *at in the process, for pc-relative pointers
    bool failed;
} byte_cursor;

static inline size_t cursor_left(const byte_cursor *cursor) { return (size_t)(cursor->end - cursor->at); }

static inline void cursor_skip(byte_cursor *cursor, uint64_t count) {
    if (count > cursor_left(cursor)) {
        cursor->failed = true;
        count = cursor_left(cursor);
    }
    cursor->at += count;
    cursor->address += count;
}

/// A little-endian integer of `size` bytes, at most 8.
static inline uint64_t cursor_integer(byte_cursor *cursor, unsigned size) {
    uint64_t value = 0;
    if (size <= cursor_left(cursor)) memcpy(&value, cursor->at, size);
    cursor_skip(cursor, size);
    return value;
}

static inline int64_t cursor_signed(byte_cursor *cursor, unsigned size) {
    unsigned unused = 64 - 8 * size;
    return (int64_t)(cursor_integer(cursor, size) << unused) >> unused;
}

static inline uint64_t cursor_uleb(byte_cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)cursor_integer(cursor, 1);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
}

static inline int64_t cursor_sleb(byte_cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        uint8_t byte = (uint8_t)cursor_integer(cursor, 1);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        if (shift < 64 && (byte & 0x40)) value |= UINT64_MAX << shift;
        return (int64_t)value;
    }
}

/// A cursor over the next `count` bytes, which `cursor` skips.
static inline byte_cursor cursor_slice(byte_cursor *cursor, uint64_t count) {
    byte_cursor slice = *cursor;
    cursor_skip(cursor, count);
    slice.end = cursor->at;
    return slice;
}
