// Signals and child processes as descriptors.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/// Blocks the signals in the calling thread and creates a descriptor that is readable while one of them is pending; -1
/// with errno.
int stall_signal_descriptor(const int *_Nonnull signals, size_t count);
/// Reads one pending signal; false if there is none.
bool stall_signal_take(int fd, int *_Nonnull signal, pid_t *_Nonnull sender);

/// A descriptor that becomes readable when the process ends; -1 with errno.
int stall_process_descriptor(pid_t pid);
/// Waits for a child that has ended. 0: `status` is its exit status; 1: `status` is the signal that ended it; -1: it
/// could not be waited for.
int stall_process_wait(pid_t pid, int *_Nonnull status);
