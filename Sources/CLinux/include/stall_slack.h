// Waits with a timeout in nanoseconds that end when it does. The kernel may end one later, so that it can serve several with
// one interrupt: by the thread's timer slack (prctl(2), 50 us unless set), or for a long wait by a part of the timeout.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_poll.h"

/// How much later than requested the kernel may end a wait of one thread.
typedef struct {
    uint64_t least_ns;  ///< the thread's timer slack; 0 for a real-time thread, whose waits end in time
    uint32_t divisor;   ///< of the timeout, if that is more: 1,000, or 200 for a thread with a nice value above 0
} stall_slack;

/// Whether the kernel and libc have epoll_pwait2 (Linux 5.11, glibc 2.35), and no filter refuses it. Finds out once.
bool stall_can_wait_precisely(void);

/// That of the calling thread. Three system calls.
stall_slack stall_slack_read(void);

/// How long to wait at most, so that the wait ends within `timeout_ns` with the slack added; 0 if the slack alone is longer.
uint64_t stall_slack_subtract(stall_slack slack, uint64_t timeout_ns);

/// Waits for up to `capacity` events (at most 256), at most `timeout_ns`. May end a little earlier: then the rest is to be waited
/// for. Returns the number of events, or -1 with errno.
int stall_poller_wait_precisely(
    int poller, stall_ready *_Nonnull ready, int capacity, uint64_t timeout_ns, stall_slack slack);
