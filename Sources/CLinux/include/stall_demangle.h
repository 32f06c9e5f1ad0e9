// Readable names from symbols, by the demanglers of the Swift and C++ runtimes. The loader resolves them at the start:
// resolving them while a report is made could wait for a dlopen that is itself the stall.
#pragma once
#include <stddef.h>

/// The short readable name of a Swift or C++ symbol, or NULL if it is neither. The caller frees it.
char *_Nullable stall_demangle(const char *_Nonnull symbol, size_t length);

/// The full name of a Swift symbol, with modules, types and effects, or NULL. The caller frees it.
char *_Nullable stall_demangle_in_full(const char *_Nonnull symbol, size_t length);
