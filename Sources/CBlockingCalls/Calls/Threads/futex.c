// syscall(2): Swift's Mutex and libdispatch wait for a futex with it. Other system calls pass.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <linux/futex.h>
#include <stdarg.h>
#include <unistd.h>

#include "../interpose.h"

// linux/futex.h has this since Linux 5.14.
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

INTERPOSE(syscall)

// A wait fails at once if the word has changed, so the first attempt has a timeout that is over. Sets `result` and
// returns true if that has answered the call.
static bool try_wait(long number, long a, long operation, long c, long e, long f, long *result) {
    struct timespec over = {0};
    *result = stall_system_call(
        number, (uint64_t)a, (uint64_t)operation, (uint64_t)c, (uintptr_t)&over, (uint64_t)e, (uint64_t)f);
    return *result != -ETIMEDOUT && *result != -EINTR;
}

// Like libc's, reads six arguments, however many there are.
long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    if (number != SYS_futex || !blocking_is_forbidden()) return NEXT(syscall)(number, a, b, c, d, e, f);
    long tried;
    switch (b & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
            if (!try_wait(number, a, b, c, e, f, &tried)) break;
            if (tried >= 0) return tried;
            errno = (int)-tried;
            return -1;
        case FUTEX_LOCK_PI:
        case FUTEX_LOCK_PI2:
        case FUTEX_WAIT_REQUEUE_PI:
            break;
        default:
            return NEXT(syscall)(number, a, b, c, d, e, f);
    }
    REPORT_CALL(syscall, STALL_BLOCKING_LOCK, (number, a, b, c, d, e, f));
}
#endif
