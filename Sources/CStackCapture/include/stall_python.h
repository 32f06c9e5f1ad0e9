// The frames of CPython's interpreter, which are on no native stack: from Python 3.11 on a call from Python to Python has
// none of its own. They are read from the interpreter's memory through the kernel, and nothing in it is trusted: it may
// change meanwhile, or be no interpreter's at all.
//
// Source: CPython, Include/internal: pycore_frame.h and pycore_code.h of 3.11 and 3.12, _Py_DebugOffsets since 3.13;
// Objects/locations.md, "Location table".
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// An interpreter in this process, by the addresses of its symbols.
typedef struct {
    uint64_t runtime;        ///< _PyRuntime
    uint64_t version;        ///< the address of Py_Version
    uint64_t evaluate_low;   ///< _PyEval_EvalFrameDefault, on whose native frames Python's run
    uint64_t evaluate_high;  ///< one past its end
    uint64_t image_low, image_high;  ///< the image that they are in
} stall_python;

/// From now on stacks of threads that execute Python have its frames. Returns false if there is an interpreter already, or if
/// this one is of another version than 3.11 to 3.14 or has no global lock. Any thread.
bool stall_python_use(const stall_python *_Nonnull python);

/// A position in a Python function, in UTF-8; texts that are too long are cut.
typedef struct {
    char function[256];  ///< its qualified name
    char file[1024];
    int32_t line;        ///< 0: unknown
} stall_python_place;

/// Reads the code of a frame of kind STALL_FRAME_PYTHON: its `address`, `identity` and `position`. False if there is no
/// such code any more. Not in a signal handler.
///
/// - Parameter identity: That of the frame. Other code may be in that memory by now.
bool stall_python_describe(
    uint64_t code, uint16_t identity, uint32_t position, stall_python_place *_Nonnull place);
