// The function, file and line of a code object.
#include <string.h>

#include "python_layout.h"

enum { LINE_TABLE_LIMIT = 1 << 20, PART = 1024, WIDEST_CHARACTER = 4 };

static bool has_type(const python_layout *layout, uint64_t object, const char *name) {
    char found[8] = {0};
    const uint64_t type = stall_python_word(object + layout->object_type), text = stall_python_word(type + layout->type_name);
    return type != 0 && text != 0 && strlen(name) < sizeof found
        && stall_read_memory(found, text, strlen(name) + 1) == strlen(name) + 1 && strcmp(found, name) == 0;
}

// MARK: Texts

static size_t add_character(char *to, size_t room, uint32_t character) {
    const bool is_invalid = character > 0x10ffff || (character >= 0xd800 && character < 0xe000);
    if (is_invalid) character = 0xfffd;
    const size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    if (size > room) return 0;
    if (size == 1) return to[0] = (char)character, 1;
    for (size_t i = size - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (character & 0x3f));
        character >>= 6;
    }
    to[0] = (char)((0xf00 >> size) | character);
    return size;
}

/// A str as zero-ended UTF-8, cut at the capacity. False if it is none.
static bool read_text(const python_layout *layout, uint64_t text, char *to, size_t capacity) {
    uint32_t state;
    if (!has_type(layout, text, "str") || !stall_read_exactly(&state, text + layout->text_state, sizeof state)) return false;
    const uint32_t width = state >> 2 & 7;
    const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    if (!is_compact || (width != 1 && width != 2 && width != 4)) return false;
    uint64_t left = stall_python_word(text + layout->text_length), at = text + (is_ascii ? layout->text_ascii : layout->text_other);
    size_t length = 0;
    uint8_t part[PART * WIDEST_CHARACTER];
    while (left > 0 && length < capacity - 1) {
        const uint64_t count = left < PART ? left : PART;
        if (stall_read_memory(part, at, count * width) < count * width) return false;
        for (uint64_t i = 0; i < count; i++) {
            uint32_t character = 0;
            memcpy(&character, part + i * width, width);
            const size_t size = add_character(to + length, capacity - 1 - length, character);
            if (size == 0) return to[length] = 0, true;
            length += size;
        }
        left -= count;
        at += count * width;
    }
    to[length] = 0;
    return length > 0;
}

// MARK: Lines

typedef struct {
    uint8_t bytes[PART];
    uint64_t next, left;  // in memory
    size_t at, count;     // in `bytes`
} line_table;

static bool next_byte(line_table *table, uint8_t *byte) {
    if (table->at == table->count) {
        table->count = table->left < PART ? (size_t)table->left : PART;
        if (table->count == 0 || stall_read_memory(table->bytes, table->next, table->count) < table->count) return false;
        table->next += table->count;
        table->left -= table->count;
        table->at = 0;
    }
    *byte = table->bytes[table->at++];
    return true;
}

/// Six bits a byte, the lowest first; bit 6: another one follows.
static bool next_number(line_table *table, uint32_t *number) {
    uint8_t byte;
    *number = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
        if (!next_byte(table, &byte)) return false;
        *number |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64)) return true;
    }
    return false;
}

static bool next_signed(line_table *table, int64_t *number) {
    uint32_t value;
    if (!next_number(table, &value)) return false;
    *number = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
    return true;
}

enum { SHORT_FORMS = 10, ONE_LINE_FORMS = 13, WITHOUT_COLUMNS = 13, WITH_COLUMNS = 14, WITHOUT_LINE = 15 };

/// The line of an instruction; 0 if it has none.
static int32_t find_line(line_table *table, int64_t line, uint32_t position) {
    uint64_t end = 0;
    uint8_t head, skipped;
    while (next_byte(table, &head)) {
        const unsigned form = head >> 3 & 15;
        uint32_t ignored;
        int64_t delta = 0;
        bool is_whole = head & 128;
        if (form < SHORT_FORMS) is_whole &= next_byte(table, &skipped);
        else if (form < ONE_LINE_FORMS) {
            delta = form - SHORT_FORMS;
            is_whole &= next_byte(table, &skipped) && next_byte(table, &skipped);
        } else if (form != WITHOUT_LINE) is_whole &= next_signed(table, &delta);
        for (int i = 0; form == WITH_COLUMNS && i < 3; i++) is_whole &= next_number(table, &ignored);
        if (!is_whole) return 0;
        line += delta;
        end += (head & 7) + 1;
        if (position < end) return form != WITHOUT_LINE && line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
    }
    return 0;
}

uint16_t stall_python_identity(const python_layout *layout, uint64_t code) {
    int32_t first = 0;
    stall_read_memory(&first, code + layout->code_first_line, sizeof first);
    const uint64_t function = stall_python_word(code + layout->code_function);
    const uint64_t words[] = {
        function, stall_python_word(function + layout->text_length), stall_python_word(function + layout->text_ascii),
        stall_python_word(code + layout->code_file), stall_python_word(code + layout->code_lines), (uint64_t)first};
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint16_t)(sum >> 48);
}

bool stall_python_describe(uint64_t code, uint16_t identity, uint32_t position, stall_python_place *place) {
    const python_layout *layout = stall_python_known_layout();
    *place = (stall_python_place){.line = 0};
    if (!layout || !has_type(layout, code, "code") || stall_python_identity(layout, code) != identity) return false;
    if (!read_text(layout, stall_python_word(code + layout->code_function), place->function, sizeof place->function)) return false;
    if (!read_text(layout, stall_python_word(code + layout->code_file), place->file, sizeof place->file)) place->file[0] = 0;
    int32_t first;
    const uint64_t lines = stall_python_word(code + layout->code_lines);
    if (!stall_read_exactly(&first, code + layout->code_first_line, sizeof first)) return true;
    if (!has_type(layout, lines, "bytes")) return true;
    const uint64_t size = stall_python_word(lines + layout->bytes_size);
    line_table table = {.next = lines + layout->bytes_data, .left = size < LINE_TABLE_LIMIT ? size : LINE_TABLE_LIMIT};
    place->line = find_line(&table, first, position);
    return true;
}
