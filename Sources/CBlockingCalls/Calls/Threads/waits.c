// Waits for a condition, and for other threads to end or to arrive.
//
// glibc has two definitions of pthread_cond_wait and its relatives, for two layouts of the condition. dlsym returns the
// one that programs are linked with since 2.3.2.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <pthread.h>

#include "../interpose.h"

INTERPOSE(pthread_cond_wait)
INTERPOSE(pthread_cond_timedwait)
INTERPOSE(pthread_barrier_wait)
INTERPOSE(pthread_join)
INTERPOSE(pthread_timedjoin_np)

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    RETURN_CALL(pthread_cond_wait, STALL_BLOCKING_LOCK, (condition, mutex));
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
    RETURN_CALL(pthread_cond_timedwait, STALL_BLOCKING_LOCK, (condition, mutex, deadline));
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    RETURN_CALL(pthread_barrier_wait, STALL_BLOCKING_LOCK, (barrier));
}

// MARK: Ends of threads

// An ended thread is joined without a report. A thread that joins itself gets EDEADLK from libc.
#define JOIN(name, arguments)                                                                            \
    if (!blocking_is_forbidden() || pthread_equal(thread, pthread_self())) return NEXT(name) arguments;  \
    const int tried = pthread_tryjoin_np(thread, value);                                                 \
    if (tried != EBUSY) return tried;                                                                    \
    REPORT_CALL(name, STALL_BLOCKING_LOCK, arguments)

int pthread_join(pthread_t thread, void **value) { JOIN(pthread_join, (thread, value)); }

int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *deadline) {
    JOIN(pthread_timedjoin_np, (thread, value, deadline));
}

#if __GLIBC_PREREQ(2, 30)
INTERPOSE(pthread_cond_clockwait)

int pthread_cond_clockwait(
    pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline) {
    RETURN_CALL(pthread_cond_clockwait, STALL_BLOCKING_LOCK, (condition, mutex, clock, deadline));
}
#endif

#if __GLIBC_PREREQ(2, 31)
INTERPOSE(pthread_clockjoin_np)

int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *deadline) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) {
        return NEXT(pthread_clockjoin_np)(thread, value, clock, deadline);
    }
    JOIN(pthread_clockjoin_np, (thread, value, clock, deadline));
}
#endif

// MARK: C11

#if __GLIBC_PREREQ(2, 28)
#include <threads.h>

INTERPOSE(cnd_wait)
INTERPOSE(cnd_timedwait)
INTERPOSE(thrd_join)

int cnd_wait(cnd_t *condition, mtx_t *mutex) { RETURN_CALL(cnd_wait, STALL_BLOCKING_LOCK, (condition, mutex)); }

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *deadline) {
    RETURN_CALL(cnd_timedwait, STALL_BLOCKING_LOCK, (condition, mutex, deadline));
}

// libc's own: a sanitizer's does not know the threads of thrd_create.
static __typeof__(pthread_tryjoin_np) *try_join;

__attribute__((constructor)) static void find_try_join(void) {
    __atomic_store_n((void **)&try_join, blocking_next("pthread_tryjoin_np"), __ATOMIC_RELEASE);
}

int thrd_join(thrd_t thread, int *result_of_thread) {
    if (!blocking_is_forbidden() || thrd_equal(thread, thrd_current())) {
        return NEXT(thrd_join)(thread, result_of_thread);
    }
    void *value;
    if (try_join && try_join(thread, &value) == 0) {
        if (result_of_thread) *result_of_thread = (int)(uintptr_t)value;
        return thrd_success;
    }
    REPORT_CALL(thrd_join, STALL_BLOCKING_LOCK, (thread, result_of_thread));
}
#endif
#endif
