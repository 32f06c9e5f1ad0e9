// Waits for descriptors. Weak: a program that also links CWaitCalls has that module's definitions, which call these.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "interpose.h"
#include "stall_wait_calls.h"

extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);
extern int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
// <sys/epoll.h> has this since glibc 2.35.
extern int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);

#define EACH_WAIT(ACTION) \
    ACTION(poll) ACTION(ppoll) ACTION(__poll_chk) ACTION(__ppoll_chk) ACTION(select) ACTION(pselect) \
    ACTION(epoll_wait) ACTION(epoll_pwait) ACTION(epoll_pwait2)

EACH_WAIT(INTERPOSE)

// A timeout in milliseconds, or a timespec.
#define KIND_OF_TIMEOUT(timeout) ((timeout) == 0 ? 0 : STALL_BLOCKING_SLEEP)
#define KIND_OF_LIMIT(limit) (blocking_is_zero(limit) ? 0 : STALL_BLOCKING_SLEEP)

WEAK int poll(struct pollfd *files, nfds_t count, int timeout) {
    RETURN_CALL(poll, KIND_OF_TIMEOUT(timeout), (files, count, timeout));
}

WEAK int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    RETURN_CALL(ppoll, KIND_OF_LIMIT(timeout), (files, count, timeout, mask));
}

WEAK int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes) {
    RETURN_CALL_AS("poll", __poll_chk, KIND_OF_TIMEOUT(timeout), (files, count, timeout, bytes));
}

WEAK int __ppoll_chk(
    struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t bytes) {
    RETURN_CALL_AS("ppoll", __ppoll_chk, KIND_OF_LIMIT(timeout), (files, count, timeout, mask, bytes));
}

WEAK int select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout) {
    const bool is_instant = timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0;
    RETURN_CALL(select, is_instant ? 0 : STALL_BLOCKING_SLEEP, (count, in, out, other, timeout));
}

WEAK int pselect(
    int count, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout, const sigset_t *mask) {
    RETURN_CALL(pselect, KIND_OF_LIMIT(timeout), (count, in, out, other, timeout, mask));
}

WEAK int epoll_wait(int set, struct epoll_event *events, int count, int timeout) {
    RETURN_CALL(epoll_wait, KIND_OF_TIMEOUT(timeout), (set, events, count, timeout));
}

WEAK int epoll_pwait(int set, struct epoll_event *events, int count, int timeout, const sigset_t *mask) {
    RETURN_CALL(epoll_pwait, KIND_OF_TIMEOUT(timeout), (set, events, count, timeout, mask));
}

WEAK int epoll_pwait2(
    int set, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *mask) {
    RETURN_CALL(epoll_pwait2, KIND_OF_LIMIT(timeout), (set, events, count, timeout, mask));
}

// The definitions here, whichever of its name the linker has chosen.
#define ALIAS(name) static __typeof__(name) behind_##name __attribute__((alias(#name)));
EACH_WAIT(ALIAS)

static void *find_behind(const char *searched) {
#define RETURN_IF_SEARCHED(name) \
    if (strcmp(searched, #name) == 0) return (void *)behind_##name;
    EACH_WAIT(RETURN_IF_SEARCHED)
    return NULL;
}

__attribute__((constructor(101))) static void stand_behind(void) { stall_wait_calls_behind = find_behind; }
#endif
