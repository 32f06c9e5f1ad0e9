// The part of the interposed functions (Calls/) besides the call of libc's.
//
//     if (!blocking_is_forbidden()) return next.usleep(time);   // nearly always: two loads
//     blocking_call call = BLOCKING_BEGIN("usleep", STALL_BLOCKING_SLEEP);
//     const int result = next.usleep(time);
//     blocking_end(&call);                                      // preserves errno
//     return result;
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "stall_blocking.h"

#define HIDDEN __attribute__((visibility("hidden")))

/// Whether blocking is forbidden anywhere.
extern bool blocking_is_watched HIDDEN;

/// Whether the calling thread is where blocking is forbidden, is in no call that is being reported, and has not reported
/// one in this callout. Preserves errno.
HIDDEN bool blocking_is_forbidden_here(uintptr_t frame);

#define blocking_is_forbidden_anywhere() \
    __builtin_expect(__atomic_load_n(&blocking_is_watched, __ATOMIC_ACQUIRE), 0)

#define blocking_is_forbidden() \
    (blocking_is_forbidden_anywhere() && blocking_is_forbidden_here((uintptr_t)__builtin_frame_address(0)))

/// A call that is being made.
typedef struct {
    const char *name;
    uint64_t began_ns;
    uintptr_t caller;  ///< the return address into the caller
    stall_blocking_kind kind;
} blocking_call;

#define BLOCKING_BEGIN(name, kind) \
    blocking_begin(name, kind, (uintptr_t)__builtin_frame_address(0), (uintptr_t)__builtin_return_address(0))

/// The call begins: those that it makes itself are not reported.
HIDDEN blocking_call blocking_begin(
    const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller);
/// It has returned: it is reported. Preserves errno.
HIDDEN void blocking_end(const blocking_call *call);

/// These, in another object than the interposed functions (CBlockingDoor).
struct stall_blocking_core {
    bool (*is_forbidden_here)(uintptr_t frame);
    blocking_call (*begin)(const char *name, stall_blocking_kind kind, uintptr_t frame, uintptr_t caller);
    void (*end)(const blocking_call *call);
};

/// The next definition of a function, which a constructor asks for once; NULL in a static program.
HIDDEN void *blocking_next(const char *name);

/// How reading from, or writing to, a descriptor may block: a kind, or 0 if it does not (O_NONBLOCK; an event, timer or
/// signal descriptor that is ready; a device that never waits). Preserves errno.
HIDDEN stall_blocking_kind blocking_kind_of_descriptor(int descriptor, bool is_write);
