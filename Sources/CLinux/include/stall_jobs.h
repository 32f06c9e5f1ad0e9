// Jobs of Swift tasks: every job of the global executor is published on its thread's beacon, with begin and end.
//
// If `swift_task_enqueueGlobal_hook` is set, the runtime calls it instead of enqueuing a job into its Dispatch queue.
// The hook here enqueues the job into the same queue, wrapped in a function that marks it. If the queue of a priority
// is unknown (yet), or the app has its own executor, the job takes its normal path. Symbols of Swift and Dispatch are
// weak.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_beacon.h"

/// Maximum number of watched threads that run jobs. Jobs of further threads run unmarked.
#define STALL_WORKER_LIMIT 256

/// A thread that runs or ran jobs: Dispatch's threads come and go, and a new one reuses the entry of one that ended.
/// Written by the thread itself. Never freed. Read it only through the functions below.
typedef struct stall_worker {
    stall_beacon *_Nonnull beacon;
    const void *_Nullable queue;  ///< Swift's queue of the current job
    uint64_t job;                 ///< the address of the running job; 0: none
    uint64_t task_word;           ///< the address of the thread's current-task variable; 0: unknown
    uint64_t generation;          ///< how many threads have used this entry
    uint32_t is_taken;
} stall_worker;

/// Called on a thread that uses a new entry, with the entry's number, before its first job runs.
typedef void (*stall_worker_handler)(int32_t number);

/// Sets the hook. An earlier hook is called first; only jobs that it passes on to the runtime are marked. False if the
/// runtime has no hook, or without Dispatch.
bool stall_jobs_start(stall_worker_handler _Nonnull handler);
/// Removes the hook, unless another one was set over it; then jobs pass unmarked.
void stall_jobs_stop(void);
/// Whether jobs are marked: the hook is set, and no other one over it.
bool stall_jobs_are_marked(void);

/// Learns the queue of the calling task as that of its priority. False if it is not one of Swift's own queues.
bool stall_jobs_learn_queue(uint8_t priority);
/// Forgets the queues: jobs take their normal path until the queues are learned again.
void stall_jobs_forget_queues(void);

int32_t stall_worker_count(void);
stall_worker *_Nonnull stall_worker_numbered(int32_t number);
static inline uint64_t stall_worker_generation(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->generation, __ATOMIC_ACQUIRE);
}
/// The task that runs on the worker's thread now; an actor runs jobs of many tasks in turn. The job's address if the
/// task is unknown; 0 between jobs. Any thread; costs one system call.
uint64_t stall_worker_task(const stall_worker *_Nonnull worker);
/// Whether the thread's current task can be read.
static inline bool stall_worker_knows_task(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->task_word, __ATOMIC_RELAXED) != 0;
}
/// Whether the worker runs a job of the same queue as `other`.
bool stall_worker_shares_queue(const stall_worker *_Nonnull worker, const stall_worker *_Nonnull other);
/// How many threads run jobs of this queue.
int32_t stall_jobs_running_in(const void *_Nullable queue);
/// How many threads run jobs of the worker's queue, if it has all its threads and a job waits; otherwise 0.
int32_t stall_worker_exhausted_count(const stall_worker *_Nonnull worker);
