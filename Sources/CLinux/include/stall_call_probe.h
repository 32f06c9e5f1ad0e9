// System calls that only a later phase makes, made once at the start: a filter that ends the process at a call that it
// does not know then does so at the start, and one that refuses it is logged.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// A system call that a filter refuses, or that the kernel does not have.
typedef struct {
    const char *_Nullable name;
    const char *_Nullable effect;  ///< what is missing without it; a clause
    int32_t error;
} stall_refused_call;

/// Makes each of the calls without an effect. Returns how many were refused; stores at most `capacity` of them.
///
/// The list in docs/in-your-process.md holds by this: scripts/system-calls compares.
size_t stall_calls_probe(stall_refused_call *_Nonnull refused, size_t capacity);
