// Unwinds a copy of a stack by the call frame information of the images that are mapped into this process.
//
// Nothing read here is trusted: a table may be malicious, and dlclose may unmap it at any moment. So the tables are
// read through the kernel (stall_memory.h), every cursor is bounded, and any inconsistency ends the stack early,
// marked as truncated.
#pragma once
#include "stack_capture.h"

/// Enough DWARF register columns for every architecture described here.
#define STALL_REGISTER_LIMIT 35

/// A register file in DWARF numbering. A signal-free capture knows only some registers, such as the stack pointer and
/// the program counter.
typedef struct {
    uint64_t value[STALL_REGISTER_LIMIT];
    uint64_t known;  ///< bit n: value[n] is known
} stall_registers;

static inline void stall_registers_set(stall_registers *_Nonnull registers, unsigned number, uint64_t value) {
    registers->value[number] = value;
    registers->known |= UINT64_C(1) << number;
}
static inline bool stall_registers_know(const stall_registers *_Nonnull registers, unsigned number) {
    return number < STALL_REGISTER_LIMIT && (registers->known >> number & 1);
}

/// A copied part of a stack. If `is_live`, the thread is blocked and other addresses may be read from the process.
typedef struct {
    const uint8_t *_Nullable bytes;
    uint64_t base;  ///< the original address of bytes[0]
    uint64_t length;
    bool is_live;
} stall_stack_copy;

typedef struct stall_unwinder stall_unwinder;
typedef struct stall_architecture stall_architecture;
extern const stall_architecture *_Nonnull const stall_architecture_x86_64;
extern const stall_architecture *_Nonnull const stall_architecture_arm64;

/// Allocates an unwinder for code of `architecture`; NULL: this machine's. NULL with errno on failure.
stall_unwinder *_Nullable stall_unwinder_create(const stall_architecture *_Nullable architecture);
void stall_unwinder_destroy(stall_unwinder *_Nonnull unwinder);

/// Adds an image that the loader does not list. Returns false if its table header is unusable.
bool stall_unwinder_add_image(
    stall_unwinder *_Nonnull unwinder, uint64_t start, uint64_t end, uint64_t eh_frame_header);

/// An image of another process.
typedef struct {
    uint64_t start, end;
    uint64_t eh_frame_header;  ///< 0: none
} stall_unwind_image;

/// The functions of Swift's runtime by which async stacks are recognized; 0: not there.
typedef struct {
    uint64_t job_run, job_run_on_task_executor, job_run_on_serial_and_task_executor, task_switch;
} stall_swift_runtime;

/// From now on stacks of another process are unwound, by these images alone, in ascending order. They stay the caller's
/// and outlive the unwinder. stall_memory_read_from makes the memory that process's.
void stall_unwinder_set_process(
    stall_unwinder *_Nonnull unwinder, const stall_unwind_image *_Nullable images, uint32_t count,
    const stall_swift_runtime *_Nonnull runtime);

/// Checks that the known images are still mapped, and forgets the rows of others. Once before each stack; one system
/// call.
void stall_unwinder_refresh(stall_unwinder *_Nonnull unwinder);

/// How often the unwinder met an image that it did not know, or not any more.
uint32_t stall_unwinder_image_count(const stall_unwinder *_Nonnull unwinder);

/// The range of the table entry for code at `address`: a function, or a part that the compiler placed elsewhere.
bool stall_unwinder_find_part(
    stall_unwinder *_Nonnull unwinder, uint64_t address, uint64_t *_Nonnull start, uint64_t *_Nonnull end);
/// The target of the call before a return address; 0 if there is none, or if it is in a register.
uint64_t stall_unwinder_call_target(const stall_unwinder *_Nonnull unwinder, uint64_t return_address);

/// The time limit for a stack, in CLOCK_MONOTONIC: at the limit the frames found so far are kept, truncated. 0: none.
void stall_unwinder_set_deadline(stall_unwinder *_Nonnull unwinder, uint64_t deadline_ns);

/// Unwinds from `registers`. Writes up to `capacity` frames and returns their number; 0 without a program counter.
uint32_t stall_unwind(
    stall_unwinder *_Nonnull unwinder, const stall_registers *_Nonnull registers,
    const stall_stack_copy *_Nonnull copy, stall_frame *_Nonnull frames, uint32_t capacity,
    bool *_Nonnull is_truncated);
