#define _GNU_SOURCE
#include "stall_fork_locks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "stall_clock.h"

enum { LIMIT = 16, LONGEST_WAIT_NS = 100000000, PAUSE_NS = 20000 };

static struct {
    void *locks[LIMIT];
    size_t count;
    int (*try_lock)(void *);
    void (*unlock)(void *);
} library;

static bool is_taken; // one of them, forever

// How many the forking thread holds: the first ones.
static __thread size_t held;

static bool take(void *lock, uint64_t deadline_ns) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    while (library.try_lock(lock) != 0) {
        if (stall_monotonic_ns() >= deadline_ns) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void begin_fork(void) {
    const int saved = errno;
    const uint64_t deadline_ns = stall_monotonic_ns() + LONGEST_WAIT_NS;
    held = 0;
    while (held < library.count && take(library.locks[held], deadline_ns)) held++;
    errno = saved;
}

static void end_fork(void) {
    const int saved = errno;
    while (held > 0) library.unlock(library.locks[--held]);
    errno = saved;
}

static void begin_child(void) {
    if (held < library.count) is_taken = true;
    end_fork();
}

void stall_fork_hold(void *const *locks, size_t count, int (*try_lock)(void *), void (*unlock)(void *)) {
    for (size_t i = 0; i < count && i < LIMIT; i++) library.locks[library.count++] = locks[i];
    library.try_lock = try_lock;
    library.unlock = unlock;
    pthread_atfork(begin_fork, end_fork, begin_child);
}

bool stall_fork_left_lock_taken(void) { return is_taken; }
