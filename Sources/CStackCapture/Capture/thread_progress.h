// Where a thread is blocked and whether it has run since: from /proc, or from what remains if parts of it are
// unreadable.
#pragma once
#include "stall_thread_files.h"

/// Changes whenever the thread runs: equal values mean that it did not run in between.
typedef struct {
    uint64_t cpu_ns, slices;
} thread_progress;

/// 0, ESRCH or the errno of a failed read.
int stall_thread_progress(stall_thread_files *_Nonnull files, thread_progress *_Nonnull progress);

/// 0, ESRCH or the errno of a failed read. ENODATA: the thread does not run, and the kernel does not show where it is.
/// EAGAIN: the same, or it is runnable and had no CPU just now.
int stall_thread_find_position(stall_thread_files *_Nonnull files, stall_thread_position *_Nonnull position);
