// Where a thread is blocked, and whether it ran meanwhile: from /proc, and from what remains where parts of it are
// closed.
#pragma once
#include "stall_thread_files.h"

/// Changes whenever the thread runs: equal before and after means that it held still in between.
typedef struct {
    uint64_t cpu_ns, slices;
} thread_progress;

/// 0, ESRCH or the errno of a failed read.
int stall_thread_progress(stall_thread_files *_Nonnull files, thread_progress *_Nonnull progress);

/// 0, ESRCH or the errno of a failed read. ENODATA: the thread does not run, and the kernel does not say
/// where it is. EAGAIN: the same, or it runs and had no CPU just now.
int stall_thread_find_position(stall_thread_files *_Nonnull files, stall_thread_position *_Nonnull position);
