// The calling thread's own stack, for a thread that reports what it does itself.
#pragma once
#include "stack_capture.h"

typedef struct stall_own_stack stall_own_stack;

/// Memory for one capture at a time; NULL with errno. Never freed.
stall_own_stack *_Nullable stall_own_stack_create(void);

/// Captures the frames from `caller` on, a return address on the calling thread's stack. Writes up to `capacity` frames and
/// returns their number; 0 if the address is not found, and -1 while another thread captures. Neither allocates nor locks.
int32_t stall_own_stack_capture(
    stall_own_stack *_Nonnull own, uint64_t caller, stall_frame *_Nonnull frames, int32_t capacity,
    bool *_Nonnull is_truncated);
