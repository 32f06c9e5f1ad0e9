// The threads of this process as numbered in /proc.
//
// In a PID namespace of its own with the outer namespace's /proc (`unshare --pid --fork`), gettid's numbers differ from
// those in /proc/self/task: the same number may be another thread there, or none.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Opens a file in /proc/self/task for a thread of this process (a gettid value). -1 with errno; ENOENT if it has
/// ended.
///
/// Neither allocates nor locks. In a PID namespace with an outer /proc, it searches the list of threads the first time
/// that it needs a thread: 10 us per thread.
int stall_task_open(int32_t thread, const char *_Nonnull name);

/// Whether a thread of this process waits for events: in epoll_wait or a sibling, or in io_uring_enter. -1 if that cannot
/// be read, or the thread has ended. Neither allocates nor locks.
int stall_task_waits_for_events(int32_t thread);
/// The same, by the descriptor of its `syscall` file; -1 also where that has not the form of one.
int stall_task_file_shows_wait(int descriptor);

/// Whether a thread of this process has the number (a gettid value).
bool stall_task_exists(int32_t thread);

/// The gettid value of a thread by its number in /proc/self/task; 0 if it has ended.
int32_t stall_task_thread(int32_t number);

/// This process's number in /proc.
int32_t stall_task_process(void);
