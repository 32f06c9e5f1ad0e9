#include "stall_gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void stall_gate_open(stall_gate *gate) {
    __atomic_store_n(&gate->is_open, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &gate->is_open, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool stall_gate_wait(stall_gate *gate, uint64_t deadline_ns) {
    const struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};
    while (!__atomic_load_n(&gate->is_open, __ATOMIC_SEQ_CST)) {
        long result = syscall(
            SYS_futex, &gate->is_open, FUTEX_WAIT_BITSET_PRIVATE, 0, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
        if (result != 0 && errno == ETIMEDOUT) break;
    }
    return __atomic_load_n(&gate->is_open, __ATOMIC_SEQ_CST) != 0;
}
