// The state of a walk over one stack, shared by the files that implement a step:
//
//     stack_unwinder.c   by the row of a table; the walk itself
//     lost_frames.c      without a table, or without the frame pointer
//     async_callers.c    past the end of the stack, along Swift's async contexts
//     stack_walk.c       the stack's words and the time that is left, for all of them
//
// A recovery walks ahead, by the step that the walk was given: so the unwinder knows the other files, and they not it.
#pragma once
#include <string.h>

#include "cfi_program.h"

enum {
    CACHED_ROW_COUNT = 4096,
    CACHED_CALL_COUNT = 256,
    FAR_SIZE = 4096,
    CODE_LIMIT = 65536,   // bytes of code searched for the start of a function
    CLOCK_INTERVAL = 32,  // steps between two readings of the clock
};

#define IN_REGISTER INT16_MIN

/// A row whose CFA is a register plus an offset and whose registers are unchanged or saved near the CFA: nearly all
/// rows.
typedef struct {
    uint64_t address;  ///< 0: empty
    uint64_t function;
    int32_t cfa_offset;
    uint8_t cfa_register;
    bool is_outermost;                    ///< the thread's first function: it has no caller
    int16_t saved[SAVED_REGISTER_LIMIT];  ///< offset of stall_architecture.saved[i] from the CFA, or IN_REGISTER
} cached_row;

typedef enum {
    NO_CALL,           // not a return address
    CALL_ELSEWHERE,    // after a call of another function, which may have tail-called this one
    CALL_UNKNOWN,      // after a call through a register, a PLT entry or a signal
    CALL_OF_FUNCTION,  // after a call of this function
} call_evidence;

/// The evidence for a return address, as one of `function`.
typedef struct {
    uint64_t return_address;  ///< 0: empty
    uint64_t function;
    call_evidence evidence;
} cached_call;

/// The distance of a function's frame pointer from its stack pointer.
typedef struct {
    uint64_t function;  ///< 0: empty
    uint64_t size;
    bool has_prologue;
} cached_frame_size;

/// A function that does not call another one.
typedef struct {
    uint64_t function, callee;  ///< 0: empty
} known_call;

struct stall_unwinder {
    const stall_architecture *architecture;
    cfi_tables tables;
    cfi_program program;
    cached_row rows[CACHED_ROW_COUNT];
    cached_call calls[CACHED_CALL_COUNT];
    cached_frame_size frame_sizes[CACHED_CALL_COUNT];
    known_call no_calls[CACHED_CALL_COUNT];
    uint8_t code[CODE_LIMIT];
    uint64_t far_base, far_length;  ///< the last part read of a live stack outside the copy
    uint8_t far[FAR_SIZE];
    uint64_t deadline_ns;  ///< 0: none
    uint32_t step_count;
    bool is_overdue;
    stall_swift_runtime runtime;
};

/// Where a frame may have Swift's async context.
typedef struct {
    uint64_t context, frame_pointer;  ///< 0: not known
} async_hint;

typedef enum { STEP_DONE, STEP_OUTERMOST, STEP_LOST } step_result;

/// One walk.
typedef struct walk {
    stall_unwinder *unwinder;
    const stall_architecture *architecture;
    const stall_stack_copy *copy;
    stall_registers registers;
    step_result (*step)(struct walk *walk);  ///< moves to the caller
    bool is_interrupted;  ///< the program counter is an instruction, not a return address
    bool is_guessed;
    bool is_trial;           ///< follows an assumed frame pointer; makes no further assumptions
    bool distrusts_zeros;    ///< for dead stack, which is full of zeros: they do not mean the outermost frame
    async_hint hints[2];     ///< of the next two inner frames, the nearer one first
    uint64_t async_context;  ///< of the innermost Swift job on this stack; 0: none
    uint64_t switching_function;  ///< where the innermost async function will continue, on another executor; 0: none
    unsigned signal_frames;
    uint64_t function;  ///< start of the function of the last frame
} walk;

/// The index of an address in a table with 2^bits entries.
static inline uint64_t stall_table_index(uint64_t address, unsigned bits) {
    return address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

static inline bool stall_walk_holds(uint64_t base, uint64_t length, uint64_t address) {
    return length >= 8 && address >= base && address - base <= length - 8;
}

/// Reads a word of the stack that is not in the copy.
bool stall_walk_read_far_word(walk *walk, uint64_t address, uint64_t *value);
/// Reads a word of the stack; the context is the walk.
static inline bool stall_walk_read_word(void *context, uint64_t address, uint64_t *value) {
    walk *walk = context;
    const stall_stack_copy *copy = walk->copy;
    if (!stall_walk_holds(copy->base, copy->length, address)) return stall_walk_read_far_word(walk, address, value);
    memcpy(value, copy->bytes + (address - copy->base), 8);
    return true;
}

/// Whether the deadline has passed, as the clock says now.
bool stall_walk_has_passed_deadline(walk *walk);
/// Whether the deadline has passed. Called in every loop that may be long; reads the clock now and then.
static inline bool stall_walk_is_overdue(walk *walk) {
    stall_unwinder *unwinder = walk->unwinder;
    if (unwinder->deadline_ns == 0 || ++unwinder->step_count % CLOCK_INTERVAL != 0) return unwinder->is_overdue;
    return stall_walk_has_passed_deadline(walk);
}

/// Recovers register `number` in a frame of `function`, if it is the frame pointer and can be found.
bool stall_walk_recover(walk *walk, uint64_t number, uint64_t function);
/// Finds the call of the function `leaf`, which has no frame, in the caller at `stack`; sets its frame pointer if it has
/// to. For a thread whose return address register is unknown.
bool stall_walk_find_leaf_caller(walk *walk, uint64_t stack, uint64_t leaf, uint64_t *return_address);
/// Makes a row for `address` from the surrounding code, if no table covers it. False if the row leads nowhere.
bool stall_walk_row_from_code(walk *walk, uint64_t address, cached_row *row);

/// The runtime of this process.
stall_swift_runtime stall_own_runtime(void);
/// Whether `function` is one in which Swift's runtime runs a job.
static inline bool stall_runs_job(const walk *walk, uint64_t function) {
    const stall_swift_runtime *runtime = &walk->unwinder->runtime;
    return function == runtime->job_run || function == runtime->job_run_on_task_executor
        || function == runtime->job_run_on_serial_and_task_executor;
}
/// Whether `function` is the one through which an async function changes its executor.
static inline bool stall_switches_task(const walk *walk, uint64_t function) {
    return function == walk->unwinder->runtime.task_switch;
}
/// At that frame: finds the function, from the registers.
void stall_walk_find_switching_function(walk *walk);
/// Where the current frame may have an async context.
async_hint stall_walk_async_hint(const walk *walk);
/// At the frame that runs a job: finds the context of its async function, unless one was found before.
void stall_walk_find_async_context(walk *walk);
/// Appends the resume addresses of the awaiting functions; returns the new count.
uint32_t stall_walk_append_async_callers(walk *walk, stall_frame *frames, uint32_t count, uint32_t capacity);
