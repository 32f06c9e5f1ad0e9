#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "stack_victims.h"

// libunwind's interface, as its x86_64 library exports it.
enum { UNWIND_SIGNAL_FRAME = 1, UNWIND_RIP = 16, ADDRESS_LIMIT = 8192 };
typedef struct {
    uint64_t opaque[127];
} unwind_cursor;
static int (*unwind_init)(unwind_cursor *, void *, int);
static int (*unwind_step)(unwind_cursor *);
static int (*unwind_register)(unwind_cursor *, int, uint64_t *);

static uint64_t found[ADDRESS_LIMIT];
static uint32_t found_count;
static uint64_t unwind_ns;
static _Atomic(uint32_t) parked, released;

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void park(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    int saved = errno;
    unwind_cursor cursor;
    const uint64_t start = monotonic_ns();
    found_count = 0;
    if (unwind_init(&cursor, context, UNWIND_SIGNAL_FRAME) == 0) {
        do {
            uint64_t address = 0;
            unwind_register(&cursor, UNWIND_RIP, &address);
            if (address == 0) break;
            found[found_count++] = address;
        } while (found_count < ADDRESS_LIMIT && unwind_step(&cursor) > 0);
    }
    unwind_ns = monotonic_ns() - start;
    atomic_store(&parked, 1);
    while (!atomic_load(&released)) syscall(SYS_futex, &released, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    atomic_store(&released, 0);
    atomic_store(&parked, 0);
    errno = saved;
}

int agreement_prepare(void) {
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    unwind_init = (int (*)(unwind_cursor *, void *, int))dlsym(library, "_ULx86_64_init_local2");
    unwind_step = (int (*)(unwind_cursor *))dlsym(library, "_ULx86_64_step");
    unwind_register = (int (*)(unwind_cursor *, int, uint64_t *))dlsym(library, "_ULx86_64_get_reg");
    struct sigaction action = {.sa_sigaction = park, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    return unwind_init && unwind_step && unwind_register;
}

uint32_t agreement_park(int32_t thread, uint64_t *addresses, uint32_t capacity) {
    syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
    while (!atomic_load(&parked)) sched_yield();
    uint32_t count = found_count < capacity ? found_count : capacity;
    memcpy(addresses, found, count * sizeof *addresses);
    return count;
}

void agreement_release(void) {
    atomic_store(&released, 1);
    syscall(SYS_futex, &released, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (atomic_load(&parked)) sched_yield();
}

uint64_t agreement_unwind_ns(void) { return unwind_ns; }
