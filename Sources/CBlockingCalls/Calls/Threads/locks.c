// Locks: the first attempt is the one that does not wait, so a lock that is free is never reported. It comes before the
// question whether blocking is forbidden here, which makes a system call.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <pthread.h>
#include <stdio.h>

#include "../interpose.h"

INTERPOSE(pthread_mutex_lock)
INTERPOSE(pthread_mutex_timedlock)
INTERPOSE(pthread_rwlock_rdlock)
INTERPOSE(pthread_rwlock_wrlock)
INTERPOSE(pthread_rwlock_timedrdlock)
INTERPOSE(pthread_rwlock_timedwrlock)
INTERPOSE(pthread_spin_lock)
INTERPOSE(flockfile)

// A lock that the thread holds already: the call fails with EDEADLK, which the attempt cannot know.
static bool fails_at_once(const pthread_mutex_t *mutex) {
    enum { TYPE = 3 };
    return (mutex->__data.__kind & TYPE) == PTHREAD_MUTEX_ERRORCHECK_NP
        && mutex->__data.__owner == stall_own_thread();
}

static bool is_own_writer(const pthread_rwlock_t *lock) { return lock->__data.__cur_writer == stall_own_thread(); }

#define LOCK(name, attempt, fails_at_once, arguments)                        \
    if (!blocking_is_forbidden_anywhere()) return NEXT(name) arguments;      \
    const int tried = attempt;                                               \
    if (tried != EBUSY && tried != EDEADLK) return tried;                    \
    if (tried == EDEADLK || (fails_at_once)) return NEXT(name) arguments;    \
    REPORT_WAIT(name, arguments)
#define LOCK_MUTEX(name, arguments) LOCK(name, pthread_mutex_trylock(mutex), fails_at_once(mutex), arguments)
#define LOCK_READING(name, arguments) LOCK(name, pthread_rwlock_tryrdlock(lock), is_own_writer(lock), arguments)
#define LOCK_WRITING(name, arguments) LOCK(name, pthread_rwlock_trywrlock(lock), is_own_writer(lock), arguments)

int pthread_mutex_lock(pthread_mutex_t *mutex) { LOCK_MUTEX(pthread_mutex_lock, (mutex)); }

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline) {
    LOCK_MUTEX(pthread_mutex_timedlock, (mutex, deadline));
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) { LOCK_READING(pthread_rwlock_rdlock, (lock)); }

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) { LOCK_WRITING(pthread_rwlock_wrlock, (lock)); }

int pthread_spin_lock(pthread_spinlock_t *lock) {
    LOCK(pthread_spin_lock, pthread_spin_trylock(lock), false, (lock));
}

void flockfile(FILE *stream) {
    if (blocking_is_forbidden_anywhere() && ftrylockfile(stream) == 0) return;
    if (!blocking_is_forbidden()) {
        NEXT(flockfile)(stream);
        return;
    }
    const blocking_call call = BLOCKING_BEGIN("flockfile", STALL_BLOCKING_LOCK);
    NEXT(flockfile)(stream);
    blocking_end(&call);
}

// MARK: With a deadline

// These check the deadline before the lock; an attempt would hide the error.
static bool is_valid(const struct timespec *deadline) {
    return (unsigned long)deadline->tv_nsec < 1000000000;
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *deadline) {
    if (!is_valid(deadline)) return NEXT(pthread_rwlock_timedrdlock)(lock, deadline);
    LOCK_READING(pthread_rwlock_timedrdlock, (lock, deadline));
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *deadline) {
    if (!is_valid(deadline)) return NEXT(pthread_rwlock_timedwrlock)(lock, deadline);
    LOCK_WRITING(pthread_rwlock_timedwrlock, (lock, deadline));
}

#if __GLIBC_PREREQ(2, 30)
INTERPOSE(pthread_mutex_clocklock)
INTERPOSE(pthread_rwlock_clockrdlock)
INTERPOSE(pthread_rwlock_clockwrlock)

static bool is_valid_on(clockid_t clock, const struct timespec *deadline) {
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && is_valid(deadline);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline) {
    if (!is_valid_on(clock, deadline)) return NEXT(pthread_mutex_clocklock)(mutex, clock, deadline);
    LOCK_MUTEX(pthread_mutex_clocklock, (mutex, clock, deadline));
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *deadline) {
    if (!is_valid_on(clock, deadline)) return NEXT(pthread_rwlock_clockrdlock)(lock, clock, deadline);
    LOCK_READING(pthread_rwlock_clockrdlock, (lock, clock, deadline));
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *deadline) {
    if (!is_valid_on(clock, deadline)) return NEXT(pthread_rwlock_clockwrlock)(lock, clock, deadline);
    LOCK_WRITING(pthread_rwlock_clockwrlock, (lock, clock, deadline));
}
#endif

// MARK: C11

#if __GLIBC_PREREQ(2, 28)
#include <threads.h>

INTERPOSE(mtx_lock)
INTERPOSE(mtx_timedlock)

#define LOCK_MTX(name, arguments)                                            \
    if (!blocking_is_forbidden_anywhere()) return NEXT(name) arguments;      \
    const int tried = mtx_trylock(mutex);                                    \
    if (tried != thrd_busy) return tried;                                    \
    REPORT_WAIT(name, arguments)

int mtx_lock(mtx_t *mutex) { LOCK_MTX(mtx_lock, (mutex)); }

int mtx_timedlock(mtx_t *mutex, const struct timespec *deadline) { LOCK_MTX(mtx_timedlock, (mutex, deadline)); }
#endif
#endif
