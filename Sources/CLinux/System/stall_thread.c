#define _GNU_SOURCE
#include "stall_thread.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernel_read.h"
#include "stall_clock.h"
#include "stall_fork.h"

enum {
    // The loader reserves room for thread-local variables of libraries that are loaded later.
    LOADER_RESERVE = 1 << 16,
    LARGEST_STACK = 1 << 28,
};

// A fault on a thread that blocks its signal ends the process without its handler: a crash reporter would miss it.
static const int synchronous_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

static int add_thread_locals(struct dl_phdr_info *image, size_t size, void *context) {
    (void)size;
    size_t *total = context;
    for (size_t i = 0; i < image->dlpi_phnum; i++) {
        ElfW(Phdr) segment;  // in a file mapping, so read through the kernel
        if (stall_kernel_read(&segment, (uintptr_t)&image->dlpi_phdr[i], sizeof segment) != sizeof segment) break;
        if (segment.p_type == PT_TLS) *total += segment.p_memsz + segment.p_align;
    }
    return 0;
}

// glibc subtracts the program's thread-local variables from the requested size. Its own symbol for that size is
// private, so their size is read from the images.
static size_t with_thread_locals(size_t stack_bytes) {
    size_t total = stack_bytes + LOADER_RESERVE;
    dl_iterate_phdr(add_thread_locals, &total);
    return total;
}

int stall_thread_start(
    unsigned long *thread, const char *name, size_t stack_bytes, void *(*body)(void *), void *context) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    // A thread inherits its creator's mask: set it during the creation.
    sigset_t mask, before;
    sigfillset(&mask);
    for (size_t i = 0; i < sizeof synchronous_signals / sizeof *synchronous_signals; i++) {
        sigdelset(&mask, synchronous_signals[i]);
    }
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    for (size_t size = with_thread_locals(stack_bytes);; size *= 2) {
        error = pthread_attr_setstacksize(&attributes, size);
        if (!error) error = pthread_create(thread, &attributes, body, context);
        if (error != EINVAL || size >= LARGEST_STACK) break;  // EINVAL: still too small
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error) return error;
    char short_name[16] = {0};
    strncpy(short_name, name, sizeof short_name - 1);
    pthread_setname_np(*thread, short_name);
    return 0;
}

// ThreadSanitizer does not intercept pthread_clockjoin_np: it would consider the thread alive even when its id is
// reused.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOINS_BY_WALL_CLOCK 1
#endif
#endif

bool stall_thread_join_until(unsigned long thread, uint64_t deadline_ns) {
#ifdef JOINS_BY_WALL_CLOCK
    const uint64_t now_ns = stall_monotonic_ns();
    deadline_ns = (uint64_t)stall_unix_us() * 1000 + (deadline_ns > now_ns ? deadline_ns - now_ns : 0);
#endif
    struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};
#ifdef JOINS_BY_WALL_CLOCK
    return pthread_timedjoin_np(thread, NULL, &deadline) == 0;
#else
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &deadline) == 0;
#endif
}

void stall_thread_wake_on_time(void) { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

void stall_thread_set_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int32_t stall_thread_id(void) {
    // A forked child's only thread has its parent's copy, but another id.
    static __thread struct {
        int32_t id;
        uint32_t generation;
    } known;
    uint32_t generation = stall_fork_generation();
    if (known.id == 0 || known.generation != generation) {
        known.id = stall_gettid();
        known.generation = generation;
    }
    return known.id;
}
