// What the agent's signals meet in an app: waits between short bursts of work.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "host_safety.h"

enum { WAIT_MS = 3 };

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool wait_is_ended(int kind, int epoll) {
    const struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
    struct epoll_event event;
    int result;
    switch (kind) {
    case 0: result = nanosleep(&pause, NULL); break;
    case 1: result = epoll_wait(epoll, &event, 1, WAIT_MS); break;
    default: result = poll(NULL, 0, WAIT_MS); break;
    }
    return result < 0 && errno == EINTR;
}

host_waits host_work_in_bursts(uint64_t shortest_ns, uint64_t longest_ns, uint64_t for_ns) {
    const uint64_t end = monotonic_ns() + for_ns;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    host_waits waits = {0};
    for (uint32_t seed = 1; monotonic_ns() < end; waits.count++) {
        seed = seed * 1103515245 + 12345;
        host_spin(shortest_ns + (seed >> 8) % (longest_ns - shortest_ns));
        waits.ended += wait_is_ended((int)(waits.count % 3), epoll);
    }
    close(epoll);
    return waits;
}
