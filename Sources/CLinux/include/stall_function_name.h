// Names of handlers, for the dump that a person asks for: reads symbol tables, and waits for the loader.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Writes the mangled name of a closure's function, cut to `capacity - 1` bytes. If a function of `module` wraps a closure of the
/// app's, the name is that one's: of the first function among what the closure's context holds. The context must stay alive.
/// False without a symbol.
bool stall_handler_name(
    uint64_t function, const uint64_t *_Nullable context, const char *_Nonnull module,
    char *_Nonnull name, size_t capacity);
