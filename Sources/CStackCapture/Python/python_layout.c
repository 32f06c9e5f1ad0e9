#include "python_layout.h"

#include <string.h>

static const python_layout layout_3_11 = {
    .interpreters_head = 40, .threads_head = 16, .interpreter_next = 0,
    .thread_next = 8, .native_id = 160, .current_frame = 56, .has_c_frame = true, .c_frame = 8,
    .frame_previous = 48, .frame_code = 32, .frame_position = 56, .frame_owner = 69, .frame_entry = 68, .marks_entry = true,
    .code_file = 112, .code_function = 128, .code_lines = 136, .code_first_line = 72, .code_instructions = 184,
    .object_type = 8, .type_name = 24,
    .text_state = 32, .text_length = 16, .text_ascii = 48, .text_other = 72,
    .bytes_size = 16, .bytes_data = 32,
};

static const python_layout layout_3_12 = {
    .interpreters_head = 40, .threads_head = 72, .interpreter_next = 0,
    .thread_next = 8, .native_id = 144, .current_frame = 56, .has_c_frame = true, .c_frame = 0,
    .frame_previous = 8, .frame_code = 0, .frame_position = 56, .frame_owner = 70,
    .code_file = 112, .code_function = 128, .code_lines = 136, .code_first_line = 68, .code_instructions = 192,
    .object_type = 8, .type_name = 24,
    .text_state = 32, .text_length = 16, .text_ascii = 40, .text_other = 56,
    .bytes_size = 16, .bytes_data = 32,
};

// The numbers at the beginning of _PyRuntime since 3.13, as far as they are read: all 64 bits wide. 3.14 has three more in
// `interpreter`, two more in `frame`, one more in `code`, and a `set_object` before what comes last.
typedef struct {
    unsigned interpreter, thread, frame, code, object, type, bytes, text;  // the index of each group's size
} number_places;

static const number_places places_3_13 = {6, 19, 28, 34, 44, 46, 64, 67};
static const number_places places_3_14 = {6, 22, 31, 39, 50, 52, 74, 77};
enum { NUMBER_COUNT = 84 };

// UINT32_MAX for one that is too large for its structure.
static uint32_t offset(const uint64_t *numbers, unsigned index, uint64_t limit) {
    return numbers[index] < limit ? (uint32_t)numbers[index] : UINT32_MAX;
}

static bool layout_of_numbers(uint64_t runtime, const number_places *places, python_layout *layout) {
    uint64_t numbers[NUMBER_COUNT];
    if (!stall_read_exactly(numbers, runtime, sizeof numbers) || memcmp(numbers, "xdebugpy", 8) != 0) return false;
    const bool has_global_lock = numbers[2] == 0;
    const unsigned interpreter = places->interpreter, thread = places->thread, frame = places->frame, code = places->code;
    const uint64_t any = 1 << 20, small = 4096, in_frame = FRAME_BYTES - 8;
    *layout = (python_layout){
        .interpreters_head = offset(numbers, 5, any),
        .interpreter_next = offset(numbers, interpreter + 2, any),
        .threads_head = offset(numbers, interpreter + 3, any),
        .thread_next = offset(numbers, thread + 2, small),
        .current_frame = offset(numbers, thread + 4, small),
        .native_id = offset(numbers, thread + 6, small),
        .frame_previous = offset(numbers, frame + 1, in_frame),
        .frame_code = offset(numbers, frame + 2, in_frame),
        .frame_position = offset(numbers, frame + 3, in_frame),
        .frame_owner = offset(numbers, frame + 5, in_frame),
        .code_file = offset(numbers, code + 1, small),
        .code_function = offset(numbers, code + 3, small),
        .code_lines = offset(numbers, code + 4, small),
        .code_first_line = offset(numbers, code + 5, small),
        .code_instructions = offset(numbers, code + 9, small),
        .object_type = offset(numbers, places->object + 1, small),
        .type_name = offset(numbers, places->type + 1, small),
        .bytes_size = offset(numbers, places->bytes + 1, small),
        .bytes_data = offset(numbers, places->bytes + 2, small),
        .text_state = offset(numbers, places->text + 1, small),
        .text_length = offset(numbers, places->text + 2, small),
        .text_ascii = offset(numbers, places->text + 3, small),
    };
    layout->text_other = layout->text_ascii + 16;  // after the length and address of a copy in UTF-8
    const uint32_t *first = &layout->interpreters_head, *last = &layout->bytes_data;
    for (const uint32_t *each = first; each <= last; each++) {
        if (*each == UINT32_MAX) return false;
    }
    layout->has_static_shims = true;
    return has_global_lock;
}

static bool find_layout(const stall_python *python, python_layout *layout) {
    uint64_t version = 0;
    if (!stall_read_exactly(&version, python->version, sizeof version)) return false;
    switch (version >> 16) {
    case 0x030b: *layout = layout_3_11; return true;
    case 0x030c: *layout = layout_3_12; return true;
    case 0x030d: return layout_of_numbers(python->runtime, &places_3_13, layout);
    case 0x030e: return layout_of_numbers(python->runtime, &places_3_14, layout);
    default: return false;
    }
}

static uint32_t larger(uint32_t one, uint32_t other) { return one > other ? one : other; }

bool stall_python_layout(const stall_python *python, python_layout *layout) {
    if (!find_layout(python, layout)) return false;
    const uint32_t words = larger(larger(layout->frame_previous, layout->frame_code), layout->frame_position);
    layout->frame_bytes = larger(words + 8, larger(layout->frame_owner, layout->frame_entry) + 1);
    return layout->frame_bytes <= FRAME_BYTES;
}
