// Long-lived descriptors in a process whose app may close descriptors that it did not open: a daemon closes all of them
// and opens its own files under the same numbers. Such a number then belongs to the app and must be neither written nor
// closed.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Everything that the agent opens goes through this, at once: where standard input, output or error is closed, its number
/// must not become the agent's, because the app would read or print there. Returns another number if it is one of the
/// three; -1 with errno if there is none. Ignores -1.
int stall_above_standard(int descriptor);

/// Marks an open file of the agent's, so that it is recognized when another file has its number later. Returns the
/// number, which is above the standard ones; ignores -1.
///
/// The mark belongs to the open file and is shared by its duplicates and by a forked child's copy: a signal for I/O
/// (F_SETSIG) that is never requested, with a process group as its receiver (F_SETOWN_EX).
int stall_descriptor_own(int descriptor);

/// Opens a file for reading, marked by flags of open(2) that mean nothing to a reader and that no program gives it: there
/// is no moment at which it is open and not marked. Its number is above the standard ones. `flags` may add others, as O_DIRECTORY.
int stall_descriptor_open_to_read(const char *_Nonnull path, int flags);

/// Whether the number still refers to a file that was marked, for a thread or not. Costs one system call for a file that was opened to be
/// read, else three, 0.2 us.
bool stall_descriptor_is_own(int descriptor);

/// Whether the number refers to another file, or none. False where files cannot be marked.
bool stall_descriptor_is_foreign(int descriptor);

/// Marks an open file as that of one thread of the process, which distinguishes it from those of the others, too: the receiver
/// is the thread then (F_OWNER_TID). False with errno if it cannot be marked.
bool stall_descriptor_mark_for(int descriptor, pid_t thread);

/// The same for a file that was just opened. Returns the number, above the standard ones; closes it and returns -1 with errno if there is no such
/// thread. Ignores -1.
int stall_descriptor_own_for(int descriptor, pid_t thread);

/// Whether the number still refers to a file that is marked for `thread`, or for one that has ended.
bool stall_descriptor_is_for(int descriptor, pid_t thread);

/// Whether it refers to any other file, or to none. False where files cannot be marked.
bool stall_descriptor_is_lost(int descriptor, pid_t thread);

/// The same for an epoll set or a timer, by one system call: such a file sends no signals for I/O, so no app has asked for a
/// receiver.
bool stall_waiter_is_lost(int descriptor, pid_t thread);

/// Closes the descriptor if it still refers to a file that is marked for `thread`, or for one that has ended. Ignores -1.
void stall_descriptor_close_for(int descriptor, pid_t thread);

/// Marks a file that was just opened as one that differs from all others: its receiver is the process (F_OWNER_PID), and
/// an earlier file of that number is not recognized any more. Returns its ticket, never 0; 0 for -1.
uint32_t stall_descriptor_own_one(int descriptor);

/// Whether the number still refers to the file with that ticket, in this process or in one that it has forked. True where
/// files cannot be marked.
bool stall_descriptor_is_one(int descriptor, uint32_t ticket);

/// Closes the descriptor if it still refers to that file. Ignores -1.
void stall_descriptor_close_one(int descriptor, uint32_t ticket);

/// Closes the descriptor if it still refers to the file that was marked. Anything else is left open: a leaked descriptor
/// does less harm than a closed one of the app's. Ignores -1.
void stall_descriptor_close(int descriptor);

/// Closes what was opened and marked for one reading, unless the app has closed it meanwhile and has something else there.
/// Where nothing can be marked, it is closed.
void stall_descriptor_end(int descriptor);

/// Gives the calling thread a table of descriptors of its own, with this one only. Nothing happens before Linux 5.9, or
/// where a sandbox refuses close_range.
void stall_descriptor_keep_only(int descriptor);

/// Identifies a file as long as it is open, even if it is renamed or deleted.
typedef struct {
    uint64_t device;
    uint64_t inode;
} stall_file_identity;

/// False if the number is not open.
bool stall_descriptor_identity(int descriptor, stall_file_identity *_Nonnull identity);

/// Finds the descriptors of this process for a file. Returns how many were stored; also 0 if /proc cannot be read.
int32_t stall_descriptors_of(stall_file_identity identity, int32_t *_Nonnull numbers, int32_t capacity);
