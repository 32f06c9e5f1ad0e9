// Clocks and thread ids that Swift's Glibc module lacks or makes expensive.
#pragma once
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// CLOCK_MONOTONIC in nanoseconds.
static inline uint64_t stall_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/// CLOCK_MONOTONIC as of the last kernel tick, some milliseconds ago, at a tenth of the cost.
static inline uint64_t stall_monotonic_coarse_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/// CLOCK_BOOTTIME in nanoseconds: the clock of `start_ticks`.
static inline uint64_t stall_boot_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/// CLOCK_REALTIME in microseconds since 1970.
static inline int64_t stall_unix_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/// The kernel's id of the calling thread.
static inline int32_t stall_gettid(void) { return (int32_t)syscall(SYS_gettid); }
