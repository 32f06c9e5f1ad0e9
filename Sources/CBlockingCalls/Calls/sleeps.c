// Functions that do nothing but wait for time to pass or for a signal.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <signal.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "interpose.h"

INTERPOSE(usleep)
INTERPOSE(sleep)
INTERPOSE(nanosleep)
INTERPOSE(clock_nanosleep)
INTERPOSE(thrd_sleep)
INTERPOSE(pause)
INTERPOSE(sigsuspend)
INTERPOSE(sigwait)
INTERPOSE(sigwaitinfo)
INTERPOSE(sigtimedwait)

static stall_blocking_kind kind_of_time(const struct timespec *time) {
    return time && !blocking_is_zero(time) ? STALL_BLOCKING_SLEEP : 0;
}

static stall_blocking_kind kind_of_clock_time(clockid_t clock, int flags, const struct timespec *time) {
    if (!time) return 0;
    struct timespec now;
    if (!(flags & TIMER_ABSTIME)) return kind_of_time(time);
    if (stall_system_call(SYS_clock_gettime, (uint64_t)clock, (uintptr_t)&now, 0, 0, 0, 0) < 0) return 0;
    const bool is_past = time->tv_sec != now.tv_sec ? time->tv_sec < now.tv_sec : time->tv_nsec <= now.tv_nsec;
    return is_past ? 0 : STALL_BLOCKING_SLEEP;
}

int usleep(useconds_t time) { RETURN_CALL(usleep, time ? STALL_BLOCKING_SLEEP : 0, (time)); }

unsigned sleep(unsigned time) { RETURN_CALL(sleep, time ? STALL_BLOCKING_SLEEP : 0, (time)); }

int nanosleep(const struct timespec *time, struct timespec *left) {
    RETURN_CALL(nanosleep, kind_of_time(time), (time, left));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    RETURN_CALL(clock_nanosleep, kind_of_clock_time(clock, flags, time), (clock, flags, time, left));
}

int thrd_sleep(const struct timespec *time, struct timespec *left) {
    RETURN_CALL(thrd_sleep, kind_of_time(time), (time, left));
}

int pause(void) { RETURN_CALL(pause, STALL_BLOCKING_SLEEP, ()); }

int sigsuspend(const sigset_t *mask) { RETURN_CALL(sigsuspend, STALL_BLOCKING_SLEEP, (mask)); }

int sigwait(const sigset_t *set, int *signal) { RETURN_CALL(sigwait, STALL_BLOCKING_SLEEP, (set, signal)); }

int sigwaitinfo(const sigset_t *set, siginfo_t *signal) {
    RETURN_CALL(sigwaitinfo, STALL_BLOCKING_SLEEP, (set, signal));
}

int sigtimedwait(const sigset_t *set, siginfo_t *signal, const struct timespec *timeout) {
    RETURN_CALL(sigtimedwait, blocking_is_zero(timeout) ? 0 : STALL_BLOCKING_SLEEP, (set, signal, timeout));
}
#endif
