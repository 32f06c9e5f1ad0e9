// Images that make calls for themselves, which no program can do without.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

/// Finds them among the images that are loaded now. The loader's lock is held meanwhile.
HIDDEN void images_find(void);

/// Whether such an image makes the call for itself: a lock of Swift's runtime, around the types that it makes; in a test,
/// whatever the testing library does, as it waits for a process that is to exit. A static program's are not known.
HIDDEN bool images_own_call(const char *call, uintptr_t caller, bool is_in_test);

/// Whether an address is in Swift's runtime. Where it waits for a futex, another thread makes a value once: a global of the
/// program's, or a part of a type, which a function of the runtime asked for.
HIDDEN bool images_are_of_runtime(uintptr_t address);
