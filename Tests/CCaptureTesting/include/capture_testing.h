// What the capture tests need from C: an independent unwinder to compare with, and code that Swift cannot write.
#pragma once
#include <stdint.h>

/// The name of the dynamic symbol that holds `address`, or NULL.
const char *_Nullable testing_symbol_name(uint64_t address);

/// The return addresses that libgcc's unwinder finds from the caller of this function outwards: element 0 lies in the
/// calling function, the last one in the thread's first function. Returns their number.
uint32_t testing_return_addresses(uint64_t *_Nonnull addresses, uint32_t capacity);
/// The start of the function that holds `address`, by the unwind tables; 0 when there is none.
uint64_t testing_function_start(uint64_t address);
