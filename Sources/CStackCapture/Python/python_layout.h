// Where a version of CPython keeps what is read.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_memory.h"
#include "stall_python.h"

/// Offsets in bytes. Those of a frame are below FRAME_BYTES.
typedef struct {
    uint32_t interpreters_head;                           // in _PyRuntime
    uint32_t threads_head;                                // in an interpreter
    uint32_t interpreter_next;
    uint32_t thread_next, native_id, current_frame;       // in a thread's state
    uint32_t frame_previous, frame_code, frame_position, frame_owner, frame_entry;
    uint32_t code_file, code_function, code_lines, code_first_line, code_instructions;
    uint32_t object_type, type_name;
    uint32_t text_state, text_length, text_ascii, text_other;  // the last two: where the characters begin
    uint32_t bytes_size, bytes_data;
    bool has_c_frame;   // the current frame is found through a structure on the native stack, at `c_frame` in it
    bool marks_entry;   // a frame says that a native call began with it; else frames without code are between such calls
    uint32_t c_frame;
    uint32_t frame_bytes;  // up to the last of the offsets: a frame may be the last before memory that is not mapped
    bool has_static_shims;  // code in the interpreter's own image is of frames that no function was called for
} python_layout;

enum { FRAME_BYTES = 128 };

/// Fills in the layout of an interpreter. False for an unknown one.
bool stall_python_layout(const stall_python *_Nonnull python, python_layout *_Nonnull layout);

/// That of the process's interpreter; NULL without one.
const python_layout *_Nullable stall_python_known_layout(void);
/// The word at an address of the process; 0 if it cannot be read.
static inline uint64_t stall_python_word(uint64_t address) {
    uint64_t word = 0;
    return address != 0 && stall_read_exactly(&word, address, sizeof word) ? word : 0;
}

/// A checksum of the function, file and lines that a code object names.
uint16_t stall_python_identity(const python_layout *_Nonnull layout, uint64_t code);
