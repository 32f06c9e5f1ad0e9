// Long-lived descriptors in a process whose app may close descriptors that it did not open: a daemon closes all of them
// and opens its own files under the same numbers. Such a number then belongs to the app and must be neither written nor
// closed.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Whether the number refers to a file of the kernel, as all of the agent's do: in /proc, in a control group, or
/// anonymous (an eventfd, an epoll set, a timerfd). Cannot distinguish the app's anonymous files from the agent's.
bool stall_descriptor_is_kernels(int descriptor);

/// Closes the descriptor if it still refers to a file of the kernel. Ignores -1.
void stall_descriptor_close(int descriptor);

/// Identifies a file as long as it is open, even if it is renamed or deleted.
typedef struct {
    uint64_t device;
    uint64_t inode;
} stall_file_identity;

/// False if the number is not open.
bool stall_descriptor_identity(int descriptor, stall_file_identity *_Nonnull identity);

/// Finds the descriptors of this process for a file. Returns how many were stored; also 0 if /proc cannot be read.
int32_t stall_descriptors_of(stall_file_identity identity, int32_t *_Nonnull numbers, int32_t capacity);
