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
#include "stall_clock.h"
#include "stall_rest.h"

/// Maximum number of watched threads that run jobs. Jobs of further threads run unmarked.
#define STALL_WORKER_LIMIT 256

/// A thread that runs or ran jobs: Dispatch's threads come and go, and a new one reuses the entry of one that ended.
/// Written by the thread itself. Never freed. Read it only through the functions below.
typedef struct stall_worker {
    stall_beacon *_Nonnull beacon;
    const void *_Nullable queue;  ///< Swift's queue of the current job
    uint64_t job;                 ///< the address of the running job; 0: none
    uint64_t task_word;           ///< the address of the thread's current-task variable; 0: unknown
    uint64_t cpu_ns, run_delay_ns;  ///< of the thread, when it took the entry; 0: unknown
    uint64_t generation;          ///< how many threads have used this entry
    uint32_t is_taken;
} stall_worker;

/// Called on a thread that uses a new entry, with the entry's number, before its first job runs.
typedef void (*stall_worker_handler)(int32_t number);

/// Whether the runtime has the hook, and Dispatch is in the process.
bool stall_jobs_are_possible(void);

/// Sets the hook. An earlier hook is called first; only jobs that it passes on to the runtime are marked. False if the
/// runtime has no hook, or without Dispatch.
bool stall_jobs_start(stall_worker_handler _Nonnull handler);
/// Sets the hook again if another tool has removed it. Returns whether that was so: jobs were not marked meanwhile.
/// Another tool's hook is left in place: it may call this one.
bool stall_jobs_restore(void);
/// Removes the hook, unless another one was set over it; then jobs pass unmarked.
void stall_jobs_stop(void);
/// Whether jobs are marked: the hook is set, and no other one over it.
bool stall_jobs_are_marked(void);

/// Learns the queue of the calling task as that of its priority. False if it is not one of Swift's own queues.
bool stall_jobs_learn_queue(uint8_t priority);
/// Forgets the queues: jobs take their normal path until the queues are learned again.
void stall_jobs_forget_queues(void);

/// Learns where threads store their current task. Call it in a task.
void stall_jobs_learn_task(void);

/// Where the calling thread stores its current task; 0 if that was not learned.
uint64_t stall_jobs_task_word(void);
/// The task whose address is in a thread's word; 0 for none. Any thread, also after that thread has ended.
uint64_t stall_jobs_read_task(uint64_t word);

/// Remembers where the calling thread stores its current task. Call it in a task.
void stall_jobs_learn_thread(void);
/// The task that a thread runs now; 0 if it runs none, or the thread was not learned or was forgotten for others. Any
/// thread; costs one system call.
uint64_t stall_jobs_task_on(int32_t thread);

/// An entry for a thread of an executor of our own, which is not numbered. NULL without memory.
stall_worker *_Nullable stall_worker_create(void);
/// Makes the calling thread the entry's.
void stall_worker_sit_down(stall_worker *_Nonnull worker);
/// Completes what the thread could not know when it sat down.
void stall_worker_complete(stall_worker *_Nonnull worker);
/// Whether the job is a task's, from begin to end. An actor's job runs those of many tasks in turn.
bool stall_job_is_task(uint64_t job);
/// A job begins on the entry's thread, taken from `queue`.
static inline void stall_worker_begin(stall_worker *_Nonnull worker, const void *_Nullable queue, uint64_t job) {
    __atomic_store_n(&worker->queue, queue, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->job, job, __ATOMIC_RELEASE);
    __atomic_store_n(&worker->beacon->counters.are_divisible, !stall_job_is_task(job), __ATOMIC_RELAXED);
    stall_beacon_publish_awake(worker->beacon, stall_monotonic_ns());
}
static inline void stall_worker_end(stall_worker *_Nonnull worker) {
    __atomic_store_n(&worker->job, 0, __ATOMIC_RELEASE);
    stall_beacon_publish_rest(worker->beacon);
}
/// Whether a job runs. Any thread.
static inline bool stall_worker_is_busy(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->job, __ATOMIC_ACQUIRE) != 0;
}

/// Whether the job may run the work of many tasks in turn. Any thread.
static inline bool stall_worker_runs_many(const stall_worker *_Nonnull worker) {
    return __atomic_load_n(&worker->beacon->counters.are_divisible, __ATOMIC_RELAXED) != 0;
}

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
