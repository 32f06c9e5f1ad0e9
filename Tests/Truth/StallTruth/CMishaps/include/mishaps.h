// What happens to programs from outside: a debugger, a wall clock that jumps, a fork. In C, because Swift has no fork and
// no ptrace.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Adds this to what CLOCK_REALTIME says in this process, from now on, for every caller of clock_gettime.
void mishap_shift_wall_clock(int64_t nanoseconds);

/// Forks without exec. The child sleeps for `child_ms` in its copy of the callout that called this, and leaves without
/// running anything else. Returns the child's pid, or -1.
pid_t mishap_fork(uint32_t child_ms);

/// Attaches to every thread of `process` as a debugger does, stops them all for `stop_ms`, and detaches. False when the system
/// does not allow it.
bool mishap_debug_all(pid_t process, uint32_t stop_ms);

/// Attaches to one thread and stays: stops it `count` times for `stop_ms` as a breakpoint does, with `run_ms` between, and
/// detaches. False when the system does not allow it.
bool mishap_debug_thread(pid_t thread, uint32_t count, uint32_t stop_ms, uint32_t run_ms);

/// CPU time of the calling thread, in nanoseconds.
uint64_t mishap_thread_cpu_ns(void);
