// Readable names from symbols, by the demanglers that the Swift and C++ runtimes already carry. The loader resolves
// them at start: looking them up while a report is made could wait behind a dlopen that is itself the stall.
#pragma once
#include <stddef.h>

/// The short readable name of a Swift or C++ symbol, or NULL when it is neither. The caller frees it.
char *_Nullable stall_demangle(const char *_Nonnull symbol, size_t length);

/// The full name of a Swift symbol, with modules, types and effects, or NULL. The caller frees it.
char *_Nullable stall_demangle_in_full(const char *_Nonnull symbol, size_t length);
