// Standard error for the agent's own lines. Its reader may be stuck, so nothing here waits if that can be avoided, and
// no lock of stdio is taken: exit and fflush of the app would wait for it.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// Writes a line, or drops it if standard error cannot take it at once; the next line is preceded by the number of
/// those dropped. A pipe or terminal takes at most 4,096 bytes at a time: the rest of a longer line is cut. Neither
/// raises SIGPIPE nor changes the descriptor's flags, which other processes share. Any thread; errno is preserved.
void stall_standard_error_write(const char *_Nonnull line, size_t length);
