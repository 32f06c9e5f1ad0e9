// Takes the stack of another thread of this process, without stopping anything and without a lock that the
// thread could hold: it may be stuck inside malloc, dlopen or a signal handler. StallCapture wraps this for
// Swift.
//
//     blocked thread:  /proc/self/task/TID/syscall + process_vm_readv, between two equal schedstat readings
//     running thread:  SIGURG or SIGPROF, whose handler copies registers and stack (signal_copy.c)
//     in a long call:  the same; the answer comes when the call returns, and is the stack of all of it
//     all:             the copy is unwound here, by the tables of .eh_frame (stack_unwinder.c)
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_thread_files.h"


/// A thread that may be captured. Filled in on the thread itself, once, or by another one.
typedef struct {
    stall_thread_files *_Nullable files;  ///< what is kept open of it; NULL: opened for each capture
    uint64_t stack_low;    ///< the lowest usable address of its stack; both 0 when it is not known
    uint64_t stack_high;   ///< one past the highest
    uint64_t start_ticks;  ///< when it started, in clock ticks since boot: tells a reused id; 0: not known
    int32_t id;            ///< gettid
} stall_thread;

/// Describes the calling thread, as far as /proc can be read, and opens what a process without rights could not open
/// later. May allocate: never called while capturing.
void stall_thread_describe(stall_thread *_Nonnull thread);
/// Closes what stall_thread_describe opened. No capture of the thread may be going on.
void stall_thread_forget(stall_thread *_Nonnull thread);

/// Describes another thread of this process, as far as that is possible from outside: its stack is then read up to
/// where its mapping ends. Returns 0; ESRCH: there is no such thread; another errno. Allocates nothing.
int stall_thread_describe_other(int32_t id, stall_thread *_Nonnull thread);

/// The calling thread's id.
int32_t stall_thread_self(void);

/// The ids of this process's threads in ascending order, at most `capacity`; `total` receives how many there are. 0
/// where /proc cannot be read. Allocates nothing.
uint32_t stall_threads_list(int32_t *_Nonnull ids, uint32_t capacity, uint32_t *_Nonnull total);

/// What an address of a stack is; the values of StallModel's CodeAddressKind.
typedef enum : uint8_t {
    STALL_FRAME_INTERRUPTED = 0,
    STALL_FRAME_RETURN_ADDRESS = 1,
    STALL_FRAME_ASYNC_RESUME = 2,
} stall_frame_kind;

typedef struct {
    uint64_t address;
    stall_frame_kind kind;
    bool is_guessed;  ///< a register had to be searched for to get here
} stall_frame;

/// A stack, innermost frame first. `frames` belongs to the sampler and lasts until its next capture.
typedef struct {
    const stall_frame *_Nullable frames;
    uint32_t count;
    bool is_truncated;                   ///< frames are missing at the outer end
    bool used_signal;                    ///< the thread copied its stack itself, in a signal handler
    bool is_late;                        ///< and did so after it had been waited for: see below
    uint64_t sent_ns;                    ///< of a late one: when it was asked, in CLOCK_MONOTONIC
    uint64_t answered_ns;                ///< the last instant that the stack is known to be true for, in CLOCK_MONOTONIC
    const char *_Nullable failed_call;   ///< what failed, when the result is another errno than the named ones
} stall_stack;

/// Whether SIGURG and SIGPROF may be used to look at a running thread.
typedef enum : uint8_t {
    STALL_SIGNAL_NEVER = 0,         ///< only blocked threads can be captured
    STALL_SIGNAL_UNLESS_OWNED = 1,  ///< not a signal that the process has a handler for already
    STALL_SIGNAL_CHAINED = 2,       ///< over an existing handler, which gets every signal that is not ours
} stall_signal_use;

typedef struct stall_sampler stall_sampler;

/// Allocates everything that a capture will need. NULL with errno. One caller at a time.
stall_sampler *_Nullable stall_sampler_create(
    uint32_t frame_capacity, uint32_t stack_capacity, stall_signal_use use);
void stall_sampler_destroy(stall_sampler *_Nonnull sampler);

/// The name of the call that opens a thread's files, for `failed_call`.
static inline const char *_Nonnull stall_open_call(void) { return "open /proc/self/task"; }

/// Captures `thread`, for at most `timeout_ns`. Neither allocates nor locks.
/// Returns 0; ESRCH: the thread ended; ETIMEDOUT: it did not answer or never held still;
/// EBUSY: it was running and no signal is ours to send; ECANCELED: it was running and blocks the signals;
/// ENODATA: it was blocked and the kernel does not show where (the process is not dumpable, or the file is missing);
/// EINPROGRESS: it did not answer, and its answer can be taken later; another errno, of `failed_call`.
int stall_sampler_capture(
    stall_sampler *_Nonnull sampler, const stall_thread *_Nonnull thread, int64_t timeout_ns,
    stall_stack *_Nonnull stack);

/// Takes the late answer of a registered thread, if it has come. The thread has executed nothing of its own between
/// `sent_ns` and `answered_ns`, because a signal is taken before the first instruction: the stack is the one of every
/// instant in between. Returns false without one, at once. Neither allocates nor locks.
bool stall_sampler_take_late(
    stall_sampler *_Nonnull sampler, const stall_thread *_Nonnull thread, stall_stack *_Nonnull stack);

/// Whether this process's memory may be looked at from outside. One that changed its user or has file capabilities may
/// not, and then parts of /proc are closed to itself.
bool stall_is_dumpable(void);
