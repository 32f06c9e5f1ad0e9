#define _GNU_SOURCE
#include "stall_slack.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

// Weak, because an older libc lacks it.
extern int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *)
    __attribute__((weak));

// The constants of select_estimate_accuracy() in the kernel (Linux, fs/select.c).
enum { PART = 1000, PART_IF_NICE = 200 };
static const uint64_t most_slack_ns = 100000000;

bool stall_can_wait_precisely(void) {
    static int answer;  // 0: not known yet
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == 0) {
        const int saved = errno;
        struct epoll_event event;
        const struct timespec none = {0};
        const bool can = &epoll_pwait2 && epoll_pwait2(-1, &event, 1, &none, NULL) == -1 && errno == EBADF;
        errno = saved;
        known = can ? 1 : -1;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known > 0;
}

// Not libc's prctl, which returns an int: a slack may be longer than two seconds.
static long timer_slack(void) { return syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0); }

stall_slack stall_slack_read(void) {
    const int saved = errno;
    const int policy = sched_getscheduler(0);
    const bool is_real_time = policy == SCHED_FIFO || policy == SCHED_RR || policy == 6 /* SCHED_DEADLINE */;
    const long slack = timer_slack();
    errno = 0;
    const int nice = getpriority(PRIO_PROCESS, 0);
    errno = saved;
    return (stall_slack){
        .least_ns = is_real_time || slack < 0 ? 0 : (uint64_t)slack,
        .divisor = is_real_time ? 0 : nice > 0 ? PART_IF_NICE : PART,
    };
}

uint64_t stall_slack_subtract(stall_slack slack, uint64_t timeout_ns) {
    uint64_t most = slack.divisor > 0 ? timeout_ns / (slack.divisor + 1) : 0;
    if (most > most_slack_ns) most = most_slack_ns;
    if (most < slack.least_ns) most = slack.least_ns;
    return timeout_ns > most ? timeout_ns - most : 0;
}

static int wait_for(int poller, stall_ready *ready, int capacity, uint64_t timeout_ns) {
    struct epoll_event events[256];
    const int most = capacity < 256 ? capacity : 256;
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    return stall_ready_copy(ready, events, epoll_pwait2(poller, events, most, &timeout, NULL));
}

int stall_poller_wait_precisely(
    int poller, stall_ready *ready, int capacity, uint64_t timeout_ns, stall_slack slack) {
    // A wait that is shorter than the slack ends late by less than that. The slack is the app's to set.
    const uint64_t shorter_ns = stall_slack_subtract(slack, timeout_ns);
    return wait_for(poller, ready, capacity, shorter_ns > 0 ? shorter_ns : 1);
}
