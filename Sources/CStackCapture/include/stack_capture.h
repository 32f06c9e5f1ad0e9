// Takes the stack of another thread of this process, without stopping anything and without a lock that the
// thread could hold: it may be stuck inside malloc, dlopen or a signal handler. StallCapture wraps this for
// Swift.
//
//     blocked thread:  /proc/self/task/TID/syscall + process_vm_readv, between two equal schedstat readings
//     running thread:  SIGPROF, whose handler copies registers and stack (signal_copy.c)
//     both:            the copy is unwound here, by the tables of .eh_frame (stack_unwinder.c)
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// A thread that may be captured. Filled in on the thread itself, once, or by another one.
typedef struct {
    uint64_t stack_low;    ///< the lowest usable address of its stack; both 0 when it is not known
    uint64_t stack_high;   ///< one past the highest
    uint64_t start_ticks;  ///< when it started, in clock ticks since boot: tells a reused id; 0: not known
    int32_t id;            ///< gettid
} stall_thread;

/// Describes the calling thread, as far as /proc can be read. May allocate: never called while capturing.
void stall_thread_describe(stall_thread *_Nonnull thread);

/// Describes another thread of this process, as far as that is possible from outside: its stack is then read up to
/// where its mapping ends. Returns 0; ESRCH: there is no such thread; another errno. Allocates nothing.
int stall_thread_describe_other(int32_t id, stall_thread *_Nonnull thread);

/// The calling thread's id.
int32_t stall_thread_self(void);

/// The ids of this process's threads in ascending order, at most `capacity`; `total` receives how many there are. 0 where /proc
/// cannot be read. Allocates nothing.
uint32_t stall_threads_list(int32_t *_Nonnull ids, uint32_t capacity, uint32_t *_Nonnull total);

/// Opens a file of a thread's /proc entry; -1 with errno. Allocates nothing.
int stall_thread_open(int32_t id, const char *_Nonnull name);

/// A thread's name in the kernel, up to 15 bytes and a zero; false when it has ended or /proc cannot be read.
bool stall_thread_name(int32_t id, char *_Nonnull name);

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
    const char *_Nullable failed_call;   ///< what failed, when the result is another errno than the named ones
} stall_stack;

/// Whether SIGPROF may be used to look at a running thread.
typedef enum : uint8_t {
    STALL_SIGNAL_NEVER = 0,         ///< only blocked threads can be captured
    STALL_SIGNAL_UNLESS_OWNED = 1,  ///< not when the process has a SIGPROF handler already
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
/// EBUSY: it was running and SIGPROF is not ours to send; another errno, of `failed_call`.
int stall_sampler_capture(
    stall_sampler *_Nonnull sampler, const stall_thread *_Nonnull thread, int64_t timeout_ns,
    stall_stack *_Nonnull stack);
