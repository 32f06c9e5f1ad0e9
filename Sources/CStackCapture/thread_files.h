// What /proc says about one thread of this process, through descriptors that are kept open: a reading costs
// about a microsecond, and a descriptor of a thread that ended says so, even when its id is in use again.
//
// Each file is optional. `syscall` may only be opened by the owner of the process's files, so it is opened when the thread
// registers: a server gives up its rights later. The others are opened when they are first asked for.
#pragma once
#include <stdatomic.h>
#include <sys/types.h>

#include "stack_capture.h"

struct stall_thread_files {
    pid_t thread;  ///< 0: unused
    uint64_t start_ticks;
    int system_call;        ///< /proc/self/task/TID/syscall; -1 when it could not be opened
    int system_call_error;  ///< why
    _Atomic(int) schedule;  ///< schedstat; -1: not opened so far, or the kernel has none
    _Atomic(int) status;
    _Atomic(int) state;     ///< stat; only read where `syscall` cannot be
};
typedef struct stall_thread_files thread_files;

/// Where a blocked thread is, from the kernel's point of view.
typedef struct {
    bool is_running;  ///< then the rest is not known
    int64_t system_call;    ///< -1: blocked outside of one
    uint64_t arguments[6];  ///< of the system call
    uint64_t stack_pointer, program_counter;
} thread_position;

/// Changes whenever the thread runs: equal before and after means that it held still in between.
typedef struct {
    uint64_t cpu_ns, slices;
} thread_activity;

/// What `status` tells.
typedef struct {
    uint64_t waits;    ///< how often the thread gave up the CPU to wait for something
    uint64_t blocked;  ///< the signals that it blocks, signal 1 in bit 0
} thread_status;

/// Opens the first file of `thread`. Returns 0, ESRCH when it ended, or the errno of `*failed_call`.
int stall_thread_files_open(
    thread_files *_Nonnull files, const stall_thread *_Nonnull thread, const char *_Nullable *_Nonnull failed_call);
void stall_thread_files_close(thread_files *_Nonnull files);
/// 0, ESRCH or the errno of a failed read. ENODATA: the thread does not run, and the kernel does not say
/// where it is. EAGAIN: the same, or it runs and had no CPU just now.
int stall_thread_files_position(thread_files *_Nonnull files, thread_position *_Nonnull position);
int stall_thread_files_activity(thread_files *_Nonnull files, thread_activity *_Nonnull activity);
int stall_thread_files_status(thread_files *_Nonnull files, thread_status *_Nonnull status);
/// The CPU time of `thread`, to the nanosecond even while it runs. 0, ESRCH or an errno.
int stall_thread_cpu_ns(pid_t thread, uint64_t *_Nonnull used_ns);
/// When `thread` started, in clock ticks since boot. 0, ESRCH or an errno.
int stall_thread_start_ticks(pid_t thread, uint64_t *_Nonnull ticks);
