// A disk on which one operation fails: SQLite's own file layer with a counter in front.
// For tests. Not thread safe: one thread uses SQLite while it is installed.
#pragma once
#include <stdint.h>

/// Puts the counter in front of SQLite's default files, for every connection opened from now on.
/// Returns 0, or SQLite's error code.
int faulty_disk_install(void);

/// Starts counting at 0 and makes operation `number` (from 1) fail; 0 for none. The operations that
/// can fail are: open, delete, read, write, truncate, sync, size, lock, and those of the log's index.
void faulty_disk_fail_at(uint64_t number);

/// Starts counting at 0 and kills the process (SIGKILL) within operation `number` (from 1); 0 for none. A write is half
/// done by then.
void faulty_disk_kill_at(uint64_t number);

/// How many operations there were since `faulty_disk_fail_at` or `faulty_disk_kill_at`.
uint64_t faulty_disk_count(void);
