// Macros of the interposed functions. Each file of Calls/ defines a family of them:
//
//     INTERPOSE(usleep)
//     int usleep(useconds_t time) {
//         RETURN_CALL(usleep, time > 0 ? STALL_BLOCKING_SLEEP : 0, (time));
//     }
//
// A wrapper and its checks call no other interposed function by its name: they use NEXT or stall_system_call.
#pragma once
#include <stddef.h>
#include <string.h>

#include "../blocking.h"
#include "stall_system_call.h"

#define WEAK __attribute__((weak))

// A sanitizer interposes some functions itself; its definitions call libc's.
#ifdef STALL_CALLS_ARE_SHARED
// Between a program with a sanitizer and libc: the sanitizer has called this object.
#define INTERCEPTOR_OF(name)
#define INTERCEPTOR(name) NULL
#else
#define INTERCEPTOR_OF(name) extern __typeof__(name) __interceptor_##name WEAK;
#define INTERCEPTOR(name) ((void *)(uintptr_t)&__interceptor_##name)
#endif

/// Finds the next definition of a function when the object is loaded: in a signal handler, or in a child after fork,
/// dlsym would wait for the loader's lock.
#define INTERPOSE(name)                                                          \
    INTERCEPTOR_OF(name)                                                         \
    static __typeof__(name) *next_##name;                                        \
    __attribute__((constructor)) static void find_##name(void) {                 \
        void *found = INTERCEPTOR(name);                                         \
        if (!found) found = blocking_next(#name);                                \
        __atomic_store_n((void **)&next_##name, found, __ATOMIC_RELEASE);        \
    }

/// A library's constructor may call the function before this object's constructors run.
#define NEXT(name) (__atomic_load_n(&next_##name, __ATOMIC_ACQUIRE) ? next_##name : (find_##name(), next_##name))

/// Calls the next definition and returns its result. The call is reported if it is made where blocking is forbidden and
/// `kind_of_call` is not 0; the kind is not evaluated elsewhere.
#define RETURN_CALL(name, kind_of_call, arguments) RETURN_CALL_AS(#name, name, kind_of_call, arguments)

/// The same for a variant of a function, which is reported by the name that the program's source has.
#define RETURN_CALL_AS(source_name, name, kind_of_call, arguments)               \
    if (!blocking_is_forbidden()) return NEXT(name) arguments;                   \
    const stall_blocking_kind kind = (stall_blocking_kind)(kind_of_call);        \
    if (!kind) return NEXT(name) arguments;                                      \
    REPORT_CALL_AS(source_name, name, kind, arguments)

/// The same where blocking is known to be forbidden.
#define REPORT_CALL(name, kind_of_call, arguments) REPORT_CALL_AS(#name, name, kind_of_call, arguments)

/// The same for a lock, after an attempt that does not wait has failed.
#define REPORT_WAIT(name, arguments)                                             \
    if (!blocking_is_forbidden()) return NEXT(name) arguments;                   \
    REPORT_CALL(name, STALL_BLOCKING_LOCK, arguments)

#define REPORT_CALL_AS(source_name, name, kind_of_call, arguments)               \
    const blocking_call call = BLOCKING_BEGIN(source_name, kind_of_call);        \
    const __typeof__(NEXT(name) arguments) result = NEXT(name) arguments;        \
    blocking_end(&call);                                                         \
    return result

/// The same for a function without a result.
#define MAKE_CALL(name, kind_of_call, arguments)                                 \
    if (!blocking_is_forbidden()) {                                              \
        NEXT(name) arguments;                                                    \
        return;                                                                  \
    }                                                                            \
    const stall_blocking_kind kind = (stall_blocking_kind)(kind_of_call);        \
    if (!kind) {                                                                 \
        NEXT(name) arguments;                                                    \
        return;                                                                  \
    }                                                                            \
    const blocking_call call = BLOCKING_BEGIN(#name, kind);                      \
    NEXT(name) arguments;                                                        \
    blocking_end(&call)

static inline bool blocking_is_zero(const struct timespec *timeout) {
    return timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
}
