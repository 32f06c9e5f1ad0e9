// Guards the system calls that SQLite makes for the agent. An app may close descriptors that it did not open, and open its
// own files under the same numbers: a daemon does. SQLite does not look before it writes a page, takes a lock or closes.
#pragma once
#include <stdbool.h>

// Of another copy of the agent in the process, the functions are others: each guards for itself.
#pragma GCC visibility push(hidden)

/// A function of any type, as SQLite passes them.
typedef void (*stall_any_function)(void);

/// The name of the system call with that index, in SQLite's words; NULL behind the last.
const char *_Nullable stall_file_guard_name(int index);

/// Takes SQLite's own function for that call and returns one that calls it. Files are guarded that are opened on a thread
/// between `stall_file_guard_begin` and `_end`: they are marked (stall_descriptors.h), and in such a stretch a call with
/// the number of one that is not marked any more fails with EBADF, or does nothing if it is close. Anything else is
/// passed on: the app may use SQLite as well.
stall_any_function _Nullable stall_file_guard_wrap(int index, stall_any_function _Nonnull original);

void stall_file_guard_begin(void);
void stall_file_guard_end(void);

#pragma GCC visibility pop
