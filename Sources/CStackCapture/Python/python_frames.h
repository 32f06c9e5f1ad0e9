// Python's frames of one thread, merged into its native ones.
//
//     innermost  clock_nanosleep
//                time_sleep
//                load()              inserted: the frames of the innermost evaluation
//                handle()
//                _PyEval_EvalFrameDefault
//                PyObject_Call ...
//                main()              inserted: those of the one before
//     outermost  _PyEval_EvalFrameDefault ...
#pragma once
#include <sys/types.h>

#include "stack_unwinder.h"
#include "stall_python.h"

enum { PYTHON_FRAME_LIMIT = 512 };

typedef struct {
    uint64_t frame, code;
    uint32_t position;       // of the last instruction, in code units
    bool begins_evaluation;  // the native function that evaluates was called for it
} python_frame;

/// Innermost first.
typedef struct {
    uint32_t count;
    bool lacks_outer, lacks_inner;
    bool is_broken;  // it could not be followed to its end
    bool may_run;    // the thread ran between the readings
    python_frame frames[PYTHON_FRAME_LIMIT];
} python_stack;

/// Reads the frames of a thread of this process; none if it executes no Python. Neither allocates nor locks.
void stall_python_read(pid_t thread, python_stack *_Nonnull stack);

/// Keeps the frames that an earlier reading has as well: a running thread did not leave these in between. The others are
/// uncertain.
void stall_python_keep_lasting(python_stack *_Nonnull stack, const python_stack *_Nonnull earlier);

/// Native code that evaluates Python's besides the function's own: compilers move its rarer half to another section. Found by
/// calls of the function that return there; all zero at first.
typedef struct {
    uint64_t low, high;
} python_other_part;

/// Inserts them before the native frames that evaluate them, and behind a truncated stack those of evaluations that it
/// lacks. Returns the new count; the same if there is no room.
uint32_t stall_python_insert(
    const python_stack *_Nonnull stack, stall_unwinder *_Nonnull unwinder, python_other_part *_Nonnull part,
    stall_frame *_Nonnull frames, uint32_t count, uint32_t capacity, bool is_truncated);
