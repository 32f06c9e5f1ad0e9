// Ways to stall that Swift cannot write, or writes differently: each is a frame shape that an unwinder must get through.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*_Nonnull victim_body)(int argument);

/// Calls `body` with a variable amount of stack allocated first (alloca).
int victim_with_alloca(int count, victim_body body);
/// Calls `body` from a frame that is aligned to 64 bytes.
int victim_realigned(int argument, victim_body body);
/// Calls `body` with arguments pushed, and from a function without a frame.
int victim_with_many_arguments(int argument, victim_body body);
/// Calls `body` in a signal handler that runs on an alternate stack.
int victim_on_alternate_stack(int argument, victim_body body);
/// Calls `body` in a destructor that runs while a C++ exception unwinds the stack.
int victim_while_throwing(int depth, victim_body body);
/// Throws and catches C++ exceptions forever.
int victim_throw_forever(void);
/// Throws through `depth` frames and catches; returns `depth`.
int victim_throw_once(int depth);
/// Forks a child that exits at once, and waits for it. 0 when that went well.
int victim_fork_once(void);
/// Sends itself a signal whose handler runs on an alternate stack. 0 when it arrived.
int victim_signal_itself(void);
/// Makes the process an owner of SIGPROF, as a profiler does, and of SIGURG.
void stress_own_sigprof(void);
/// Sends itself SIGPROF. 0 when the owner's handler got it once.
int stress_profile_itself(void);
/// Keeps SIGURG from arriving at the calling thread.
void victim_block_sigurg(void);
/// If a SIGURG is pending: calls its handler as the kernel would. Returns the duration in nanoseconds; 0 if none was
/// pending.
uint64_t victim_run_sigurg_handler(void);
/// A descriptor that never becomes readable.
int stress_empty_pipe(void);
int stress_epoll_on_pipe(void);
int stress_epoll_wait(int epoll, int milliseconds);
/// Resolves a name at a name server that never answers.
int victim_resolve_name(int argument);
/// Runs `body` through qsort's comparison.
int victim_in_qsort(int argument, victim_body body);

/// Loads libunwind, privately (linked in, it would replace `backtrace`), and installs the SIGUSR1 handler that uses it:
/// it unwinds the interrupted code and then blocks until it is released. False when there is no libunwind.
int agreement_prepare(void);
/// Interrupts `thread` and waits until it is blocked in the handler. Returns the number of addresses that libunwind
/// found; element 0 is the interrupted instruction.
uint32_t agreement_park(int32_t thread, uint64_t *_Nonnull addresses, uint32_t capacity);
/// The duration of libunwind's last run, in nanoseconds.
uint64_t agreement_unwind_ns(void);
/// Loads libdw, privately, and shows it this process. False when there is no libdw.
int libdw_prepare(void);
/// Unwinds a copy of a blocked thread's stack with libdw. Returns the number of frames.
uint32_t libdw_unwind(
    int32_t thread, const uint8_t *_Nonnull bytes, uint64_t base, uint64_t length, uint64_t frame_pointer,
    uint64_t stack_pointer, uint64_t program_counter);
/// Lets the parked thread go on.
void agreement_release(void);

#ifdef __cplusplus
}
#endif
