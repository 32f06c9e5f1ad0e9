// The state of a walk over one stack, shared by the files that know how to take a step:
//
//     stack_unwinder.c   by the row of a table; the walk itself
//     lost_frames.c      without a table, or without the frame pointer
//     async_callers.c    past the end of the stack, along Swift's async contexts
#pragma once
#include "cfi_program.h"

enum {
    CACHED_ROW_COUNT = 4096,
    CACHED_CALL_COUNT = 256,
    FAR_SIZE = 4096,
    CODE_LIMIT = 65536,  // bytes of code searched for the start of a function
};

#define IN_REGISTER INT16_MIN

/// A row whose CFA is a register plus an offset and whose registers are unchanged or saved near the CFA:
/// nearly all.
typedef struct {
    uint64_t address;  ///< 0: empty
    uint64_t function;
    int32_t cfa_offset;
    uint8_t cfa_register;
    bool is_outermost;                    ///< the thread's first function: it has no caller
    int16_t saved[SAVED_REGISTER_LIMIT];  ///< where stall_architecture.saved[i] is, from the CFA, or IN_REGISTER
} cached_row;

typedef enum {
    NO_CALL,           // not a return address
    CALL_ELSEWHERE,    // behind a call of something else, which may have jumped here
    CALL_UNKNOWN,      // behind a call through a register, a PLT entry or a signal
    CALL_OF_FUNCTION,  // behind a call of this very function
} call_evidence;

/// What was found out about a return address as one of `function`.
typedef struct {
    uint64_t return_address;  ///< 0: empty
    uint64_t function;
    call_evidence evidence;
} cached_call;

/// How far the frame pointer of a function lies above its stack pointer.
typedef struct {
    uint64_t function;  ///< 0: empty
    uint64_t size;
    bool has_prologue;
} cached_frame_size;

struct stall_unwinder {
    const stall_architecture *architecture;
    cfi_tables tables;
    cfi_program program;
    cached_row rows[CACHED_ROW_COUNT];
    cached_call calls[CACHED_CALL_COUNT];
    cached_frame_size frame_sizes[CACHED_CALL_COUNT];
    uint8_t code[CODE_LIMIT];
    uint64_t far_base, far_length;  ///< the piece of a live stack outside the copy that was read last
    uint8_t far[FAR_SIZE];
    uint64_t deadline_ns;  ///< 0: none
    uint32_t step_count;
    bool is_overdue;
};

/// What a frame may keep Swift's async context in.
typedef struct {
    uint64_t context, frame_pointer;  ///< 0: not known
} async_hint;

/// One walk.
typedef struct {
    stall_unwinder *unwinder;
    const stall_architecture *architecture;
    const stall_stack_copy *copy;
    stall_registers registers;
    bool is_interrupted;  ///< the program counter is an instruction, not a return address
    bool is_guessed;
    bool is_trial;           ///< follows an assumed frame pointer; makes no further assumptions
    bool distrusts_zeros;    ///< of dead stack, which is full of them: they do not mean the outermost frame
    async_hint hints[2];     ///< of the two frames inside of this one, the nearer one first
    uint64_t async_context;  ///< of the innermost job that Swift's concurrency runs on this stack; 0: none
    unsigned signal_frames;
    uint64_t function;  ///< where the function of the frame last left begins
} walk;

typedef enum { STEP_DONE, STEP_OUTERMOST, STEP_LOST } step_result;

/// Where something about an address is kept, in a table of 2^bits places.
static inline uint64_t stall_place(uint64_t address, unsigned bits) {
    return address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

/// Reads a word of the stack; the context is the walk.
bool stall_walk_read_word(void *context, uint64_t address, uint64_t *value);
/// Moves to the caller.
step_result stall_walk_step(walk *walk);
/// Whether the time is over. Asked at every turn of what may turn often: it looks at the clock now and then.
bool stall_walk_is_overdue(walk *walk);

/// Recovers register `number` in a frame of `function`, if it is the frame pointer and can be found.
bool stall_walk_recover(walk *walk, uint64_t number, uint64_t function);
/// Makes a row for `address` from the code around it, where no table covers it. False when that would lead
/// nowhere.
bool stall_walk_row_from_code(walk *walk, uint64_t address, cached_row *row);

/// Whether `function` is one in which Swift's concurrency runs a job.
bool stall_runs_job(uint64_t function);
/// What the frame that the walk is at may keep an async context in.
async_hint stall_walk_async_hint(const walk *walk);
/// At the frame that runs a job: finds the context of the async function inside of it, if none was found so
/// far.
void stall_walk_find_async_context(walk *walk);
/// Appends where the awaiting functions will resume; returns the new count.
uint32_t stall_walk_append_async_callers(walk *walk, stall_frame *frames, uint32_t count, uint32_t capacity);
