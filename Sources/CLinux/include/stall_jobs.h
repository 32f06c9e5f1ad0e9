// Jobs of Swift's tasks: every job of the global executor runs between a begin and an end, on a beacon of its thread's.
//
// The runtime calls `swift_task_enqueueGlobal_hook`, when it is set, instead of putting a job into its Dispatch queue.
// The hook here puts it into the same queue, with a function that marks the job. Where the queue of a priority is not
// known (yet), and where the app has an executor of its own, a job goes the way that it went before. Symbols of Swift
// and Dispatch are weak.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_beacon.h"

/// How many threads that run jobs are watched at the same time. Jobs of further threads run unmarked.
#define STALL_WORKER_LIMIT 256

/// A thread that runs jobs, or ran some: Dispatch's threads come and go, and the next one takes the place of one that
/// ended. Written by the thread itself. Lives as long as the process. Read it through the functions below only.
typedef struct stall_worker {
    stall_beacon *_Nonnull beacon;
    const void *_Nullable queue;  ///< Swift's queue that the job came from
    uint64_t job;                 ///< the address of the job that runs; 0: none
    uint64_t task_word;           ///< where the thread keeps the address of its current task; 0: not known
    uint64_t generation;          ///< how many threads have had this place
    uint32_t is_taken;
} stall_worker;

/// Called on a thread that takes a place which no thread had before, with the place's number, before its first job
/// runs.
typedef void (*stall_worker_handler)(int32_t number);

/// Sets the hook. An earlier hook is called first: only what it leaves to the runtime is marked. False without a hook
/// in the runtime, or without Dispatch.
bool stall_jobs_start(stall_worker_handler _Nonnull handler);
/// Takes the hook back, unless another one was set over it; then jobs pass unmarked.
void stall_jobs_stop(void);
/// Whether jobs are marked: the hook is set, and nothing was set over it.
bool stall_jobs_are_marked(void);

/// Notes which queue the calling task came from, as the queue of its priority. False when that is not one of Swift's
/// own queues.
bool stall_jobs_learn_queue(uint8_t priority);
/// Forgets the queues: jobs take the runtime's way until they are learned again.
void stall_jobs_forget_queues(void);

int32_t stall_worker_count(void);
stall_worker *_Nonnull stall_worker_numbered(int32_t number);
static inline uint64_t stall_worker_generation(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->generation, __ATOMIC_ACQUIRE);
}
/// The task that runs on the worker's thread now: an actor runs jobs of many tasks one after the other. The address of
/// the job when that is not known; 0 between jobs. Any thread may ask; one system call.
uint64_t stall_worker_task(const stall_worker *_Nonnull worker);
/// Whether the thread's current task can be read.
static inline bool stall_worker_knows_task(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->task_word, __ATOMIC_RELAXED) != 0;
}
/// Whether the worker is at a job of the same queue as `other` is.
bool stall_worker_shares_queue(const stall_worker *_Nonnull worker, const stall_worker *_Nonnull other);
/// How many threads are at jobs of this queue.
int32_t stall_jobs_running_in(const void *_Nullable queue);
/// How many threads are at jobs of the worker's queue when it has all that it may have and a job waits; otherwise 0.
int32_t stall_worker_exhausted_count(const stall_worker *_Nonnull worker);
