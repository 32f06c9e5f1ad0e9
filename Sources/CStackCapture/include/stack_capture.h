// Captures the stack of another thread of this process, without stopping any thread and without a lock that the thread
// could hold: it may be stuck inside malloc, dlopen or a signal handler. StallCapture wraps this for Swift.
//
//     blocked thread:  /proc/self/task/TID/syscall + process_vm_readv, between two equal schedstat readings
//     running thread:  SIGURG or SIGPROF, whose handler copies registers and stack (Capture/signal_copy.c)
//     in a long call:  the same; the answer comes when the call returns, and is valid for the whole call
//     all:             the copy is unwound by the tables of .eh_frame (Unwind/stack_unwinder.c)
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_thread_files.h"


/// A thread that can be captured. Filled in on the thread itself, once, or by another one.
typedef struct {
    stall_thread_files *_Nullable files;  ///< its open files; NULL: opened for each capture
    uint64_t stack_low;    ///< the lowest usable address of its stack; both 0 if unknown
    uint64_t stack_high;   ///< one past the highest
    uint64_t start_ticks;  ///< start time in clock ticks since boot: detects a reused id; 0: unknown
    int32_t id;            ///< gettid
    bool unblocks;         ///< did not block SIGURG when it was described: if it does later, it will unblock it again
} stall_thread;

/// Describes the calling thread as far as /proc can be read, and opens the files that an unprivileged process could not
/// open later. May allocate: never call it during a capture.
void stall_thread_describe(stall_thread *_Nonnull thread);
/// Closes the files from stall_thread_describe. The thread must not be in use by a capture.
void stall_thread_forget(stall_thread *_Nonnull thread);

/// Describes another thread of this process as far as possible from outside: its stack is then read up to the end of
/// its mapping. Returns 0; ESRCH if there is no such thread; another errno. Does not allocate.
int stall_thread_describe_other(int32_t id, stall_thread *_Nonnull thread);

/// The calling thread's id.
int32_t stall_thread_self(void);

/// The ids of this process's threads in ascending order, at most `capacity`; `total` receives the number of threads. 0
/// if /proc cannot be read. Does not allocate.
uint32_t stall_threads_list(int32_t *_Nonnull ids, uint32_t capacity, uint32_t *_Nonnull total);

/// The kind of an address on a stack; the values of StallModel's CodeAddressKind.
typedef enum : uint8_t {
    STALL_FRAME_INTERRUPTED = 0,
    STALL_FRAME_RETURN_ADDRESS = 1,
    STALL_FRAME_ASYNC_RESUME = 2,
    STALL_FRAME_PYTHON = 3,  ///< of an interpreter (stall_python.h): the address is that of its code object; never stored
} stall_frame_kind;

typedef struct {
    uint64_t address;
    stall_frame_kind kind;
    bool is_guessed;    ///< a register had to be searched for to get here, or the thread may have run on since
    uint16_t identity;  ///< a checksum of the code object's names
    uint32_t position;  ///< in the code object
} stall_frame;

/// A stack, innermost frame first. `frames` belongs to the sampler and is valid until its next capture.
typedef struct {
    const stall_frame *_Nullable frames;
    uint32_t count;
    bool is_truncated;                   ///< frames are missing at the outer end
    bool used_signal;                    ///< the thread copied its stack itself, in a signal handler
    bool is_late;                        ///< and did so after the timeout: see below
    bool shows_new_image;                ///< no earlier stack led through one of its images
    uint64_t sent_ns;                    ///< of a late one: when it was requested, in CLOCK_MONOTONIC
    uint64_t answered_ns;                ///< last instant for which the stack is known valid, in CLOCK_MONOTONIC
    const char *_Nullable failed_call;   ///< the failed call, if the result is another errno than the named ones
} stall_stack;

/// Whether SIGURG and SIGPROF may be used to capture a running thread.
typedef enum : uint8_t {
    STALL_SIGNAL_NEVER = 0,         ///< only blocked threads can be captured
    STALL_SIGNAL_UNLESS_OWNED = 1,  ///< not a signal for which the process has a handler already
    STALL_SIGNAL_CHAINED = 2,       ///< in front of an existing handler, which gets all other signals
} stall_signal_use;

typedef struct stall_sampler stall_sampler;

/// Allocates all memory for captures. NULL with errno. One caller at a time.
stall_sampler *_Nullable stall_sampler_create(
    uint32_t frame_capacity, uint32_t stack_capacity, stall_signal_use use);
void stall_sampler_destroy(stall_sampler *_Nonnull sampler);

/// The name of the call that opens a thread's files, for `failed_call`.
static inline const char *_Nonnull stall_open_call(void) { return "open /proc/self/task"; }

/// Captures `thread`, for at most `timeout_ns`. Neither allocates nor locks. Returns 0; ESRCH: the thread ended;
/// ETIMEDOUT: it neither answered nor stayed blocked; EBUSY: it was running and may not be signalled; ECANCELED: it was
/// running and always blocks the signals; ENODATA: it was blocked and the kernel does not show where (the process is not
/// dumpable, or the file is missing); EINPROGRESS: it did not answer, and its answer can be collected later; another
/// errno, of `failed_call`.
int stall_sampler_capture(
    stall_sampler *_Nonnull sampler, const stall_thread *_Nonnull thread, int64_t timeout_ns,
    stall_stack *_Nonnull stack);

/// Collects the late answer of a registered thread, if it has come. The thread has executed no user code between
/// `sent_ns` and `answered_ns`, because a signal is delivered before the first instruction: the stack is valid for
/// every instant in between. One that blocked the signal answers when it unblocks it. It has run on until then, so all
/// frames are marked as guessed: those that blocked and unblocked the signal, and their callers, were there all the
/// time. Returns false at once without an answer. Neither allocates nor locks.
bool stall_sampler_collect_late(
    stall_sampler *_Nonnull sampler, const stall_thread *_Nonnull thread, stall_stack *_Nonnull stack);

/// Whether this process is dumpable. After a change of user or with file capabilities it is not, and then parts of
/// /proc are unreadable for itself.
bool stall_is_dumpable(void);
