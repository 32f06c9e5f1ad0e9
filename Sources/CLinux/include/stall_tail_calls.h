// Functions that ended in a jump to another one have no frame any more, but the call that entered them is still there.
#pragma once
#include <stdint.h>

/// The entry of the function that the call before `return_address` went to, when `callee` is in another function: the
/// one that was called has since jumped to it. 0 when the callee was called directly, and whenever it cannot be told
/// (an indirect call, a call through a stub, an image without an unwind table, another architecture than x86-64).
///
/// Reads the images' code and unwind tables under the loader's list lock, so that they stay mapped. Allocates nothing.
uint64_t stall_tail_caller(uint64_t return_address, uint64_t callee);
