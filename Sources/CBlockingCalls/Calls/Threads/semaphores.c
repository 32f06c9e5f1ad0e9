// Semaphores. An available unit is taken without a report.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <pthread.h>
#include <semaphore.h>

#include "../interpose.h"

INTERPOSE(sem_wait)
INTERPOSE(sem_timedwait)

// libc too acts on a cancellation before it looks at the semaphore.
static bool take(sem_t *semaphore) {
    const int saved = errno;
    pthread_testcancel();
    const bool is_taken = sem_trywait(semaphore) == 0;
    errno = saved;
    return is_taken;
}

#define WAIT(name, is_valid, arguments)                                      \
    if (!blocking_is_forbidden_anywhere()) return NEXT(name) arguments;      \
    if (!(is_valid)) return NEXT(name) arguments;                            \
    if (take(semaphore)) return 0;                                           \
    REPORT_WAIT(name, arguments)

static bool is_valid(const struct timespec *deadline) { return (unsigned long)deadline->tv_nsec < 1000000000; }

int sem_wait(sem_t *semaphore) { WAIT(sem_wait, true, (semaphore)); }

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
    WAIT(sem_timedwait, is_valid(deadline), (semaphore, deadline));
}

#if __GLIBC_PREREQ(2, 30)
INTERPOSE(sem_clockwait)

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline) {
    const bool is_known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    WAIT(sem_clockwait, is_known && is_valid(deadline), (semaphore, clock, deadline));
}
#endif
#endif
