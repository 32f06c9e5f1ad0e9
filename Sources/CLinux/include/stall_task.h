// The threads of this process as /proc names them.
//
// Where a process has a PID namespace of its own and /proc is the outer one's (`unshare --pid --fork`), gettid's
// numbers are not those of /proc/self/task: a number of the one may there be another thread, or none.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Opens a file of /proc/self/task for a thread of this process (a gettid value). -1 and errno; ENOENT when it ended.
///
/// Allocates nothing and takes no lock. In a PID namespace of another /proc it looks through the list of threads when
/// it meets one for the first time: 10 us a thread.
int stall_task_open(int32_t thread, const char *_Nonnull name);

/// Whether a thread of this process has the number (a gettid value).
bool stall_task_exists(int32_t thread);

/// The gettid value of a thread by its number in /proc/self/task; 0 when it ended.
int32_t stall_task_thread(int32_t number);

/// This process's number in /proc.
int32_t stall_task_process(void);
