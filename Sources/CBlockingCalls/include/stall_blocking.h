// Calls that may block, on threads where the app forbids them: the interposed functions of libc and libdispatch (Calls/)
// note each for a reader. Only programs that import StallBlocking link this.
//
// Blocking is forbidden on a thread while its loop is busy or a job of a task runs on it (stall_current.h), unless a scope of
// `expected` is open. The first such call of a callout or job is noted, once it has returned, with the thread's stack; calls
// that it makes itself are part of it. In the tasks of a test it is forbidden, too (`stall_blocking_own`): there every call
// is noted, but for one whose stack is held already.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stack_capture.h"
#include "stall_beacon.h"

/// The kind of wait: the values of StallModel's CauseClass.
typedef enum : uint8_t {
    STALL_BLOCKING_LOCK = 2,
    STALL_BLOCKING_DISK = 3,
    STALL_BLOCKING_NETWORK = 4,
    STALL_BLOCKING_IPC = 5,
    STALL_BLOCKING_SLEEP = 6,
} stall_blocking_kind;

#define STALL_VIOLATION_FRAMES 256

/// A call that may block, made where that is forbidden.
typedef struct {
    const char *_Nonnull call;        ///< the function's name, a constant
    const void *_Nullable target;     ///< the thread's beacon, or the Dispatch queue; only to be compared
    uint64_t owner;                   ///< of the test; 0: none
    uint64_t began_ns, length_ns;     ///< CLOCK_MONOTONIC; how long the call took
    int32_t thread;                   ///< gettid
    stall_blocking_kind kind;
    uint8_t phase;                    ///< LoopPhase
    bool is_truncated;
    uint32_t count;
    stall_frame frames[STALL_VIOLATION_FRAMES];  ///< the caller of the function first
} stall_violation;

/// The functions that the interposed ones of another object call.
typedef struct stall_blocking_core stall_blocking_core;
/// Gives that object these functions, once, and says whether calls are watched.
typedef void (*stall_blocking_set)(const stall_blocking_core *_Nullable core, bool is_watched);

/// The program calls the interposed functions of another object, and not this one's. Before the start.
void stall_blocking_use(stall_blocking_set _Nonnull set);

/// Starts to hand violations over, to one reader; `wake` is called after each on the thread that blocked, with `context`:
/// it must neither allocate nor wait. False without memory, in a program without dynamic libc, or if a reader exists.
bool stall_blocking_start(void (*_Nonnull wake)(void *_Nullable context), void *_Nullable context);
/// Ends that. `wake` may be running on another thread for a moment longer.
void stall_blocking_stop(void);
/// Blocking is also forbidden in tasks where a task-local value is not 0; the violation then belongs to that number. `key`
/// is the address of Swift's `TaskLocal<UInt64>`, which is never freed. False as `stall_blocking_start`.
bool stall_blocking_own(const void *_Nonnull key);

/// Until its end a number owns the violations of its tasks, of which 64 at a time are held; later ones are not noted.
void stall_blocking_add_owner(uint64_t owner);
/// Ends that. Returns whether any of its violations found no room. Take the others afterwards.
bool stall_blocking_end_owner(uint64_t owner);

/// Moves an owner's oldest violation to `violation`; false if there is none. One caller at a time.
bool stall_blocking_take(uint64_t owner, stall_violation *_Nonnull violation);
/// Whether there is one to take.
bool stall_blocking_has_any(uint64_t owner);
/// The number of violations that found no room since the last call.
uint32_t stall_blocking_take_dropped(void);
