// System calls for signal handlers. A call of libc's function may be its first one in this image: with lazy binding the
// loader then saves all vector registers, up to 3 KiB, on a stack that may be only as large as the kernel's frame.
#pragma once
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/// Returns the call's result, or the negative errno. Leaves errno alone.
static inline long stall_system_call(
    long number, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth, uint64_t fifth, uint64_t sixth
) {
#if defined(__x86_64__)
    register uint64_t r10 __asm__("r10") = fourth;
    register uint64_t r8 __asm__("r8") = fifth;
    register uint64_t r9 __asm__("r9") = sixth;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register uint64_t x0 __asm__("x0") = first;
    register uint64_t x1 __asm__("x1") = second;
    register uint64_t x2 __asm__("x2") = third;
    register uint64_t x3 __asm__("x3") = fourth;
    register uint64_t x4 __asm__("x4") = fifth;
    register uint64_t x5 __asm__("x5") = sixth;
    register long x8 __asm__("x8") = number;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory");
    return (long)x0;
#endif
}

static inline int32_t stall_own_process(void) { return (int32_t)stall_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0); }
static inline int32_t stall_own_thread(void) { return (int32_t)stall_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0); }

/// CLOCK_MONOTONIC in nanoseconds; 0 where a sandbox refuses the call.
static inline uint64_t stall_handler_now_ns(void) {
    struct timespec now = {0};
    stall_system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
