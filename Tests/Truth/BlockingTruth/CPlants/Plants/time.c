// Plants that wait for time, a signal or a descriptor.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <threads.h>
#include <unistd.h>

#include "planting.h"

static const struct timespec moment = {0, 100000};

PLANT(usleep) { usleep(1); }
PLANT(nanosleep) { nanosleep(&moment, NULL); }
PLANT(clock_nanosleep) { clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL); }
PLANT(clock_nanosleep_until) {
    const struct timespec end = plants_deadline(CLOCK_MONOTONIC, MILLISECOND);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}
PLANT(thrd_sleep) { thrd_sleep(&moment, NULL); }
PLANT(poll) { poll(NULL, 0, 1); }
PLANT(ppoll) { ppoll(NULL, 0, &moment, NULL); }
PLANT(select) { select(0, NULL, NULL, NULL, &(struct timeval){0, 100}); }
PLANT(pselect) { pselect(0, NULL, NULL, NULL, &moment, NULL); }

static int set = -1;

static void make_set(void) {
    if (set < 0) set = epoll_create1(EPOLL_CLOEXEC);
    NEED(set >= 0);
}

PLANT(epoll_wait) { epoll_wait(set, &(struct epoll_event){0}, 1, 1); }
PLANT(epoll_pwait) { epoll_pwait(set, &(struct epoll_event){0}, 1, 1, NULL); }

// MARK: Signals

static sigset_t signals;

static void block_signal(void) {
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static void send_signal(void) {
    block_signal();
    NEED(pthread_kill(pthread_self(), SIGUSR1) == 0);
}

PLANT(sigwait) {
    int signal;
    sigwait(&signals, &signal);
}
PLANT(sigwaitinfo) { sigwaitinfo(&signals, NULL); }
PLANT(sigtimedwait) { sigtimedwait(&signals, NULL, &moment); }
PLANT(sigsuspend) {
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
}

static const plant plants[] = {
    {"usleep", STALL_BLOCKING_SLEEP, NULL, plant_usleep},
    {"nanosleep", STALL_BLOCKING_SLEEP, NULL, plant_nanosleep},
    {"clock_nanosleep", STALL_BLOCKING_SLEEP, NULL, plant_clock_nanosleep},
    {"clock_nanosleep_until", STALL_BLOCKING_SLEEP, NULL, plant_clock_nanosleep_until},
    {"thrd_sleep", STALL_BLOCKING_SLEEP, NULL, plant_thrd_sleep},
    {"poll", STALL_BLOCKING_SLEEP, NULL, plant_poll},
    {"ppoll", STALL_BLOCKING_SLEEP, NULL, plant_ppoll},
    {"select", STALL_BLOCKING_SLEEP, NULL, plant_select},
    {"pselect", STALL_BLOCKING_SLEEP, NULL, plant_pselect},
    {"epoll_wait", STALL_BLOCKING_SLEEP, make_set, plant_epoll_wait},
    {"epoll_pwait", STALL_BLOCKING_SLEEP, make_set, plant_epoll_pwait},
    {"sigwait", STALL_BLOCKING_SLEEP, send_signal, plant_sigwait},
    {"sigwaitinfo", STALL_BLOCKING_SLEEP, send_signal, plant_sigwaitinfo},
    {"sigtimedwait", STALL_BLOCKING_SLEEP, block_signal, plant_sigtimedwait},
    {"sigsuspend", STALL_BLOCKING_SLEEP, send_signal, plant_sigsuspend},
};
const plant_family time_family = {plants, COUNT_OF(plants)};
