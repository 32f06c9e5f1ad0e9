// The reader of /proc/locks: who holds the locks of files.
//
// Never on the watchdog: for a read of /proc/locks the kernel waits for every CPU of the machine, seconds on a loaded
// one.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// The process that holds the file lock which this process waits for. False if it waits for none, for locks of several
/// processes, or for one whose process the kernel does not know.
///
/// The kernel reports waits by file and process, not by thread: if two threads wait for two files, it is unknown which
/// waits for which.
bool stall_file_lock_holder(int32_t *_Nonnull process);

/// The process that holds the lock of a database file that this process has open, in SQLite's way of locking. This
/// process's own id if only it holds one. False if no process does, or several do.
bool stall_database_lock_holder(int32_t *_Nonnull process);

/// Whether some process, this one included, holds a POSIX lock of some of the bytes `first` to `last` of the file with
/// this inode; false if unknown. Opening the file to find out, and closing it, would drop the locks that this process
/// holds.
bool stall_file_is_locked(uint64_t inode, uint64_t first, uint64_t last);
