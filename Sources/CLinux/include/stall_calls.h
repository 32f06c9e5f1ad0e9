// Which function a place on a stack is in, and which one the call there went to, by the images' own code and unwind
// tables: what is needed to notice a function that was called and has jumped on, which leaves no frame.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct stall_call {
    uint64_t address;   ///< in: what to look up; for a return address the byte before it
    uint64_t function;  ///< out: the start of the function around the address, 0 when unknown
    /// out: where the direct call that holds the address enters a function. 0 without a call that ends right behind the
    /// address, for an indirect call, for one through a linkage stub, and on other architectures than x86-64.
    uint64_t entered;
} stall_call;

/// Fills in all of them. The images are read through the kernel: they may be unloaded, or cut short, meanwhile.
void stall_calls_read(stall_call *_Nonnull calls, size_t count);
