// The function around an address and the target of a direct call there, from the images' code and unwind tables: finds
// functions that were called and have tail-called, which leaves no frame.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct stall_call {
    uint64_t address;   ///< in: what to look up; for a return address, the byte before it
    uint64_t function;  ///< out: the start of the function around the address, 0 if unknown
    /// out: the function entered by the direct call at the address. 0 if no direct call ends right behind the address,
    /// for calls through a linkage stub, and on architectures other than x86-64.
    uint64_t entered;
} stall_call;

/// Fills in all of them. Reads the images through the kernel, because they may be unloaded or truncated meanwhile.
void stall_calls_read(stall_call *_Nonnull calls, size_t count);
