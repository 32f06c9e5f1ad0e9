#include "stall_demangle.h"

#include <stdint.h>

// Exported by libswiftCore. Swift's own backtraces use the first: short for Swift, and C++ as well. It is not a public
// interface, so it is weak; without it the full name is used.
extern char *_swift_backtrace_demangle(const char *, size_t, char *, size_t *) __attribute__((weak));
extern char *swift_demangle(const char *, size_t, char *, size_t *, uint32_t) __attribute__((weak));

char *stall_demangle(const char *symbol, size_t length) {
    if (_swift_backtrace_demangle) {
        size_t capacity = 0;
        return _swift_backtrace_demangle(symbol, length, NULL, &capacity);
    }
    return stall_demangle_in_full(symbol, length);
}

char *stall_demangle_in_full(const char *symbol, size_t length) {
    return swift_demangle ? swift_demangle(symbol, length, NULL, NULL, 0) : NULL;
}
