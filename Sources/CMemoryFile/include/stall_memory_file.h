// Files that are nowhere but in memory, and pipes that no other child inherits: Swift's Glibc lacks both calls.
#pragma once

/// A file without a name, closed on exec. Returns its descriptor, or -1 and errno.
int stall_memory_file(void);

/// Makes a pipe whose ends are closed on exec: `ends[0]` to read, `ends[1]` to write. Returns 0, or -1 and errno.
int stall_closed_pipe(int ends[_Nonnull 2]);
