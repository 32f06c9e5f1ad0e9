// System calls for the run loop that Swift's Glibc module lacks: epoll, eventfd, timerfd, the main dispatch queue's
// hooks. Every function returns the system call's result and preserves errno.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "stall_descriptors.h"
#include "stall_fork.h"

/// One ready descriptor: the events from epoll, and the token of its registration.
typedef struct {
    uint32_t events;
    uint64_t token;
} stall_ready;

static inline int stall_poller_create(void) { return stall_descriptor_own(epoll_create1(EPOLL_CLOEXEC)); }
static inline int stall_poller_add(int poller, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}
static inline int stall_poller_change(int poller, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}
static inline int stall_poller_remove(int poller, int fd) {
    return epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL);
}
static inline int stall_ready_copy(
    stall_ready *_Nonnull ready, const struct epoll_event *_Nonnull events, int count) {
    for (int i = 0; i < count; i++)
        ready[i] = (stall_ready){.events = events[i].events, .token = events[i].data.u64};
    return count;
}
/// Waits for up to `capacity` events (at most 256), at most `timeout_ms` (-1: forever). Returns the number of events,
/// or -1 with errno.
static inline int stall_poller_wait(
    int poller, stall_ready *_Nonnull ready, int capacity, int timeout_ms) {
    struct epoll_event events[256];
    int most = capacity < 256 ? capacity : 256;
    return stall_ready_copy(ready, events, epoll_wait(poller, events, most, timeout_ms));
}
/// The same without waiting. A direct system call, because libc's epoll_wait is a cancellation point, whose check costs
/// a tenth of the call.
static inline int stall_poller_poll(int poller, stall_ready *_Nonnull ready, int capacity) {
    struct epoll_event events[256];
    int most = capacity < 256 ? capacity : 256;
    long count = syscall(SYS_epoll_pwait, poller, events, most, 0, NULL, 8);
    return stall_ready_copy(ready, events, (int)count);
}

static inline int stall_eventfd_create(void) { return stall_descriptor_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
static inline void stall_eventfd_write(int fd) {
    uint64_t one = 1;
    ssize_t written;
    do written = write(fd, &one, sizeof one);
    while (written < 0 && errno == EINTR);
}
/// Reads and resets the counter of an eventfd; false if another thread was faster.
static inline bool stall_eventfd_take(int fd) {
    uint64_t count;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}
static inline bool stall_descriptor_is_readable(int fd) {
    struct pollfd request = {.fd = fd, .events = POLLIN};
    return poll(&request, 1, 0) == 1;
}
/// Looks at two descriptors without taking an event: 1 if the first is readable, plus 2 if the second is, or is not open. Not by
/// libc's poll where there is a call of that name: that is a cancellation point.
static inline int stall_descriptors_are_readable(int first, int second) {
    struct pollfd requests[] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
#ifdef SYS_poll
    const long count = syscall(SYS_poll, requests, 2, 0);
#else
    const int count = poll(requests, 2, 0);
#endif
    if (count <= 0) return 0;
    return (requests[0].revents != 0 ? 1 : 0) | (requests[1].revents != 0 ? 2 : 0);
}
/// A descriptor that is always readable. Its user marks it.
static inline int stall_ready_descriptor_create(void) {
    return stall_above_standard(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
}

static inline int stall_timerfd_create(void) {
    return stall_descriptor_own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}
/// Arms for an instant of CLOCK_MONOTONIC; 0 disarms. Costs 17 us if the instant has passed already: check first.
static inline int stall_timerfd_arm(int fd, uint64_t deadline_ns) {
    struct itimerspec when = {
        .it_value = {
            .tv_sec = (time_t)(deadline_ns / 1000000000),
            .tv_nsec = (long)(deadline_ns % 1000000000)}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/// The descriptor that is readable while the main dispatch queue has work; -1 with errno: ENOSYS without Dispatch, EMFILE,
/// ENFILE or ENOMEM if there is no descriptor for it now. Never the number of standard input or output.
int stall_main_queue_descriptor(void);
/// Runs the blocks of the main dispatch queue. Only on the main thread, after resetting the descriptor's counter.
void stall_main_queue_drain(void);

/// Names the calling thread, for debuggers and `top -H`; Linux stores 15 bytes.
static inline void stall_name_this_thread(const char *_Nonnull name) { prctl(PR_SET_NAME, name); }

/// Sets the nice value of the calling thread; on Linux each thread has one. -1 with errno.
static inline int stall_set_nice(int nice) { return setpriority(PRIO_PROCESS, 0, nice); }
