// Descriptors that are kept for long, in a process whose app may close what it did not open: a daemon closes all of
// them, and opens files of its own under the same numbers. What has such a number then is the app's, to be neither
// written nor closed.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Whether the number is a file of the kernel's, as all are that an agent keeps open: of /proc, of a control group, or
/// without a name (an eventfd, an epoll set, a timerfd). One that the app made itself cannot be told from ours.
bool stall_descriptor_is_kernels(int descriptor);

/// Closes it if it is still a file of the kernel's. -1 is no descriptor.
void stall_descriptor_close(int descriptor);

/// What a file has for as long as it is open, whatever becomes of its name.
typedef struct {
    uint64_t device;
    uint64_t inode;
} stall_file_identity;

/// False when the number is no open file.
bool stall_descriptor_identity(int descriptor, stall_file_identity *_Nonnull identity);

/// The numbers under which this process has a file open. Returns how many were stored; 0 as well where /proc cannot be
/// read.
int32_t stall_descriptors_of(stall_file_identity identity, int32_t *_Nonnull numbers, int32_t capacity);
