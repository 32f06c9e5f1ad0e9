// What /proc says about one thread of this process, through descriptors that are kept open: a reading costs
// about a microsecond, and a descriptor of a thread that ended says so, even when its id is in use again.
#pragma once
#include <sys/types.h>

#include "stack_capture.h"

typedef struct {
    pid_t thread;          ///< 0: unused
    uint64_t start_ticks;
    int system_call;       ///< /proc/self/task/TID/syscall
    int schedule;          ///< /proc/self/task/TID/schedstat; -1 where the kernel has none
    int status;            ///< /proc/self/task/TID/status
} thread_files;

/// Where a blocked thread is, from the kernel's point of view.
typedef struct {
    bool is_running;  ///< then the addresses are not known
    uint64_t stack_pointer, program_counter;
} thread_position;

/// Changes whenever the thread runs: equal before and after means that it held still in between.
typedef struct {
    uint64_t cpu_ns, slices;
} thread_activity;

/// Opens the files of `thread`. Returns 0, ESRCH when it ended, or the errno of `*failed_call`.
int stall_thread_files_open(thread_files *files, const stall_thread *thread, const char **failed_call);
void stall_thread_files_close(thread_files *files);
/// 0, ESRCH or the errno of a failed read.
int stall_thread_files_position(const thread_files *files, thread_position *position);
int stall_thread_files_activity(const thread_files *files, thread_activity *activity);
/// How often the thread gave up the CPU to wait for something. 0, ESRCH or an errno.
int stall_thread_files_waits(const thread_files *files, uint64_t *waits);
/// The CPU time of `thread`, to the nanosecond even while it runs. 0, ESRCH or an errno.
int stall_thread_cpu_ns(pid_t thread, uint64_t *used_ns);
/// When `thread` started, in clock ticks since boot. 0, ESRCH or an errno.
int stall_thread_start_ticks(pid_t thread, uint64_t *ticks);
