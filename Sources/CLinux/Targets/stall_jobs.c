#define _GNU_SOURCE
#include "stall_jobs.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stall_current.h"
#include "stall_fork.h"
#include "stall_memory.h"
#include "stall_clock.h"
#include "stall_queue.h"
#include "stall_thread_files.h"

#define WEAK __attribute__((weak))
#define SWIFT __attribute__((swiftcall))

typedef struct swift_job swift_job;
// Swift's SerialExecutorRef: both words 0 stand for the global executor.
typedef struct {
    void *identity;
    uintptr_t implementation;
} swift_executor;
typedef SWIFT void (*enqueue_function)(swift_job *);
typedef SWIFT void (*enqueue_hook)(swift_job *, enqueue_function);

extern enqueue_hook swift_task_enqueueGlobal_hook WEAK;
extern SWIFT void swift_job_run(swift_job *, swift_executor) WEAK;
extern SWIFT uint8_t swift_concurrency_jobPriority(swift_job *) WEAK;
extern SWIFT size_t swift_task_getJobFlags(swift_job *) WEAK;
extern SWIFT void *swift_task_getCurrent(void) WEAK;
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *)) WEAK;
extern const char *dispatch_queue_get_label(void *queue) WEAK;

enum { PRIORITIES = 65 };
static void *queues[PRIORITIES];            // by priority; NULL: unknown
static enqueue_function runtime_enqueue;    // the runtime's path without a hook
static enqueue_hook earlier;                // the hook that was set before
static stall_worker_handler new_worker;
static bool is_started;
static uint64_t hook_lock;                  // process << 32 | thread, while the hook is changed; 0: free
static __thread swift_job *passed_on;       // a job that this thread is passing to the earlier hook

static stall_worker workers[STALL_WORKER_LIMIT];
static int32_t worker_count;
static pthread_key_t worker_key;
static bool has_worker_key;
static __thread stall_worker *this_worker;
static __thread bool has_left;  // the thread is ending: jobs that destructors run are not marked

// The location of each thread's current task: a private thread-local variable of Swift, found by searching for a known
// task.
static struct {
    unsigned long module, offset;
    bool is_known;
} task_variable;
typedef struct {
    unsigned long module, offset;
} tls_index;
extern void *__tls_get_addr(tls_index *) WEAK;

// MARK: Workers

static void leave(void *context) {
    stall_worker *worker = context;
    // Another thread may take the entry from here on.
    this_worker = NULL;
    if (stall_current_beacon == worker->beacon) stall_current_beacon = NULL;
    has_left = true;
    __atomic_store_n(&worker->task_word, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->job, 0, __ATOMIC_RELAXED);
    stall_beacon_publish(worker->beacon, STALL_LOOP_IDLE, stall_monotonic_ns());
    stall_beacon_publish_thread(worker->beacon, 0);
    __atomic_store_n(&worker->is_taken, 0, __ATOMIC_RELEASE);
}

uint64_t stall_jobs_task_word(void) {
    if (!__atomic_load_n(&task_variable.is_known, __ATOMIC_ACQUIRE) || !__tls_get_addr) return 0;
    tls_index index = {task_variable.module, task_variable.offset};
    return (uint64_t)(uintptr_t)__tls_get_addr(&index);
}

void stall_worker_complete(stall_worker *worker) {
    if (__atomic_load_n(&worker->task_word, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&worker->task_word, stall_jobs_task_word(), __ATOMIC_RELAXED);
}

stall_worker *stall_worker_create(void) {
    stall_worker *worker = calloc(1, sizeof *worker);
    if (worker) worker->beacon = stall_beacon_create();
    if (worker && worker->beacon) return worker;
    free(worker);
    return NULL;
}

// The CPU time and waits of the thread before its first job are no part of it. Once per thread, 10 us.
static void note_counters(stall_worker *worker) {
    const int saved = errno;
    stall_thread_files files;
    stall_thread_schedule schedule = {0};
    stall_thread_files_visit(&files, stall_gettid());
    const bool is_known = stall_thread_read_schedule(&files, &schedule) == 0;
    stall_thread_files_close(&files);
    __atomic_store_n(&worker->cpu_ns, is_known ? schedule.cpu_ns : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->run_delay_ns, is_known ? schedule.run_delay_ns : 0, __ATOMIC_RELAXED);
    errno = saved;
}

void stall_worker_sit_down(stall_worker *worker) {
    note_counters(worker);
    stall_beacon_publish_thread(worker->beacon, stall_gettid());
    __atomic_store_n(&worker->task_word, stall_jobs_task_word(), __ATOMIC_RELAXED);
    __atomic_store_n(&worker->generation, worker->generation + 1, __ATOMIC_RELEASE);
    this_worker = worker;
    stall_current_beacon = worker->beacon;
    if (has_worker_key) pthread_setspecific(worker_key, worker);
}

// A reused or a new entry; NULL if there is none.
static stall_worker *take_entry(void) {
    int32_t count = __atomic_load_n(&worker_count, __ATOMIC_ACQUIRE);
    for (int32_t i = 0; i < count; i++) {
        uint32_t is_free = 0;
        if (__atomic_compare_exchange_n(
                &workers[i].is_taken, &is_free, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            stall_worker_sit_down(&workers[i]);
            return &workers[i];
        }
    }
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    stall_fork_defer();
    pthread_mutex_lock(&lock);
    int32_t number = worker_count;
    stall_beacon *beacon = number < STALL_WORKER_LIMIT ? stall_beacon_create() : NULL;
    if (beacon) {
        workers[number].beacon = beacon;
        workers[number].is_taken = 1;
        stall_worker_sit_down(&workers[number]);
        __atomic_store_n(&worker_count, number + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    stall_fork_allow();
    if (!beacon) return NULL;
    stall_worker_handler handler = __atomic_load_n(&new_worker, __ATOMIC_ACQUIRE);
    if (handler) handler(number);
    return &workers[number];
}

int32_t stall_worker_count(void) { return __atomic_load_n(&worker_count, __ATOMIC_ACQUIRE); }

stall_worker *stall_worker_numbered(int32_t number) { return &workers[number]; }

uint64_t stall_jobs_read_task(uint64_t word) {
    uint64_t task = 0;
    // Read through the kernel: the thread may end meanwhile, and its variables with it.
    return word != 0 && stall_read_memory(&task, word, sizeof task) == sizeof task ? task : 0;
}

// One word each, so that it is of one thread: bits 63 to 48 are the number's upper ones, the rest is the variable's address.
enum { LEARNED_LIMIT = 64, THREAD_BITS = 22, WORD_BITS = 48 };
static uint64_t learned[LEARNED_LIMIT];

void stall_jobs_learn_thread(void) {
    stall_jobs_learn_task();
    const uint64_t word = stall_jobs_task_word(), thread = (uint32_t)stall_gettid();
    if (word == 0 || word >> WORD_BITS != 0 || thread >> THREAD_BITS != 0) return;
    __atomic_store_n(
        &learned[thread % LEARNED_LIMIT], thread / LEARNED_LIMIT << WORD_BITS | word, __ATOMIC_RELAXED);
}

uint64_t stall_jobs_task_on(int32_t thread) {
    if (thread <= 0) return 0;
    const uint64_t known = __atomic_load_n(&learned[(uint32_t)thread % LEARNED_LIMIT], __ATOMIC_RELAXED);
    if (known >> WORD_BITS != (uint32_t)thread / LEARNED_LIMIT) return 0;
    return stall_jobs_read_task(known & ((UINT64_C(1) << WORD_BITS) - 1));
}

uint64_t stall_worker_task(const stall_worker *worker) {
    uint64_t job = __atomic_load_n(&worker->job, __ATOMIC_ACQUIRE);
    if (job == 0) return 0;
    uint64_t task = stall_jobs_read_task(__atomic_load_n(&worker->task_word, __ATOMIC_RELAXED));
    return task ? task : job;
}

bool stall_worker_shares_queue(const stall_worker *worker, const stall_worker *other) {
    return __atomic_load_n(&worker->job, __ATOMIC_ACQUIRE) != 0
        && __atomic_load_n(&worker->queue, __ATOMIC_RELAXED) == __atomic_load_n(&other->queue, __ATOMIC_RELAXED);
}

int32_t stall_jobs_running_in(const void *queue) {
    int32_t count = 0;
    for (int32_t i = 0; i < stall_worker_count(); i++) {
        count += __atomic_load_n(&workers[i].job, __ATOMIC_ACQUIRE) != 0
            && __atomic_load_n(&workers[i].queue, __ATOMIC_RELAXED) == queue;
    }
    return count;
}

// Swift's queues are as wide as the number of CPUs when the first one was created.
static int32_t queue_width(void) {
    static int32_t width;
    if (width == 0) width = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    return width;
}

int32_t stall_worker_exhausted_count(const stall_worker *worker) {
    const void *queue = __atomic_load_n(&worker->queue, __ATOMIC_RELAXED);
    if (!queue || __atomic_load_n(&worker->job, __ATOMIC_ACQUIRE) == 0) return 0;
    stall_queue_snapshot snapshot = stall_queue_read(queue);
    if (!snapshot.is_known || snapshot.is_empty) return 0;
    int32_t count = stall_jobs_running_in(queue);
    return count >= queue_width() ? count : 0;
}

// MARK: Jobs

// Swift's JobKind: 0 for a task, from 192 on for what only the runtime uses.
bool stall_job_is_task(uint64_t job) {
    return !swift_task_getJobFlags || (swift_task_getJobFlags((swift_job *)(uintptr_t)job) & 0xff) == 0;
}

static const swift_executor global_executor = {NULL, 0};

static void stall_jobs_run(void *context) {
    swift_job *job = context;
    stall_worker *worker = this_worker || has_left ? this_worker : take_entry();
    // A job that runs inside of another one on this thread belongs to that one.
    if (!worker || worker->job != 0) return swift_job_run(job, global_executor);
    stall_worker_begin(worker, stall_current_queue(), (uint64_t)(uintptr_t)job);
    swift_job_run(job, global_executor);
    stall_worker_end(worker);
}

static SWIFT void stall_jobs_enqueue_marked(swift_job *job) {
    uint8_t priority = swift_concurrency_jobPriority(job);
    void *queue = priority < PRIORITIES && __atomic_load_n(&is_started, __ATOMIC_RELAXED)
        ? __atomic_load_n(&queues[priority], __ATOMIC_ACQUIRE) : NULL;
    if (queue) return dispatch_async_f(queue, job, stall_jobs_run);
    __atomic_load_n(&runtime_enqueue, __ATOMIC_ACQUIRE)(job);
}

static SWIFT void stall_jobs_enqueue(swift_job *job, enqueue_function original) {
    // A hook that was set over this one may have become the earlier one, and call this one as its own earlier one.
    if (passed_on == job) return stall_jobs_enqueue_marked(job);
    if (__atomic_load_n(&runtime_enqueue, __ATOMIC_RELAXED) != original)
        __atomic_store_n(&runtime_enqueue, original, __ATOMIC_RELEASE);
    const enqueue_hook next = __atomic_load_n(&earlier, __ATOMIC_ACQUIRE);
    if (!next) return stall_jobs_enqueue_marked(job);
    swift_job *outer = passed_on;
    passed_on = job;
    next(job, stall_jobs_enqueue_marked);
    passed_on = outer;
}

// A forked child may inherit the lock from a thread that it does not have.
static void lock_hook(void) {
    const uint64_t own = (uint64_t)(uint32_t)getpid() << 32 | (uint32_t)stall_gettid();
    for (;;) {
        uint64_t holder = __atomic_load_n(&hook_lock, __ATOMIC_RELAXED);
        const bool is_free = holder == 0 || (pid_t)(holder >> 32) != getpid();
        if (is_free && __atomic_compare_exchange_n(
                &hook_lock, &holder, own, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        sched_yield();
    }
}

static void unlock_hook(void) { __atomic_store_n(&hook_lock, 0, __ATOMIC_RELEASE); }

// Sets the hook, over whichever is set. Returns whether it was not set.
static bool set_hook(void) {
    enqueue_hook before = __atomic_load_n(&swift_task_enqueueGlobal_hook, __ATOMIC_ACQUIRE);
    if (before == stall_jobs_enqueue) return false;
    do __atomic_store_n(&earlier, before, __ATOMIC_RELEASE);
    while (!__atomic_compare_exchange_n(
        &swift_task_enqueueGlobal_hook, &before, stall_jobs_enqueue, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return true;
}

bool stall_jobs_are_possible(void) {
    return &swift_task_enqueueGlobal_hook && swift_job_run && swift_concurrency_jobPriority && dispatch_async_f
        && dispatch_queue_get_label;
}

bool stall_jobs_start(stall_worker_handler handler) {
    if (!stall_jobs_are_possible()) return false;
    stall_queue_prepare();
    queue_width();
    if (!has_worker_key) has_worker_key = pthread_key_create(&worker_key, leave) == 0;
    __atomic_store_n(&new_worker, handler, __ATOMIC_RELEASE);
    lock_hook();
    __atomic_store_n(&is_started, true, __ATOMIC_RELEASE);
    set_hook();
    unlock_hook();
    return true;
}

static bool is_removed(void) {
    return __atomic_load_n(&is_started, __ATOMIC_ACQUIRE)
        && !__atomic_load_n(&swift_task_enqueueGlobal_hook, __ATOMIC_ACQUIRE);
}

bool stall_jobs_restore(void) {
    if (!is_removed()) return false;
    lock_hook();
    const bool was_lost = is_removed() && set_hook();
    unlock_hook();
    return was_lost;
}

void stall_jobs_stop(void) {
    lock_hook();
    __atomic_store_n(&is_started, false, __ATOMIC_RELEASE);
    enqueue_hook ours = stall_jobs_enqueue;
    // Under another hook it stays, and passes jobs on unmarked.
    if (&swift_task_enqueueGlobal_hook)
        __atomic_compare_exchange_n(
            &swift_task_enqueueGlobal_hook, &ours, earlier, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    unlock_hook();
}

bool stall_jobs_are_marked(void) {
    return __atomic_load_n(&is_started, __ATOMIC_ACQUIRE) && &swift_task_enqueueGlobal_hook
        && __atomic_load_n(&swift_task_enqueueGlobal_hook, __ATOMIC_ACQUIRE) == stall_jobs_enqueue;
}

// MARK: Determined by a task

typedef struct {
    uint64_t code, task;  // an address in Swift's image; the variable's current value
} task_search;

static bool holds(const struct dl_phdr_info *image, uint64_t address) {
    for (int i = 0; i < image->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &image->dlpi_phdr[i];
        uint64_t start = image->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= start && address - start < part->p_memsz) return true;
    }
    return false;
}

static int search_image(struct dl_phdr_info *image, size_t size, void *context) {
    const task_search *search = context;
    if (size < sizeof *image || !image->dlpi_tls_data || !holds(image, search->code)) return 0;
    for (int i = 0; i < image->dlpi_phnum; i++) {
        if (image->dlpi_phdr[i].p_type != PT_TLS) continue;
        unsigned long found = 0, count = 0;
        for (unsigned long at = 0; at + sizeof(uint64_t) <= image->dlpi_phdr[i].p_memsz; at += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, (const char *)image->dlpi_tls_data + at, sizeof word);
            if (word != search->task) continue;
            found = at;
            count++;
        }
        if (count != 1) return 1;
        task_variable.module = image->dlpi_tls_modid;
        task_variable.offset = found;
        __atomic_store_n(&task_variable.is_known, true, __ATOMIC_RELEASE);
    }
    return 1;
}

void stall_jobs_learn_task(void) {
    if (!swift_task_getCurrent || __atomic_load_n(&task_variable.is_known, __ATOMIC_ACQUIRE)) return;
    task_search search = {
        (uint64_t)(uintptr_t)swift_task_getCurrent, (uint64_t)(uintptr_t)swift_task_getCurrent()};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (search.task == 0) return;
    stall_fork_defer();
    pthread_mutex_lock(&lock);
    if (!task_variable.is_known) dl_iterate_phdr(search_image, &search);
    pthread_mutex_unlock(&lock);
    stall_fork_allow();
}

bool stall_jobs_learn_queue(uint8_t priority) {
    if (priority >= PRIORITIES || !dispatch_queue_get_label) return false;
    void *queue = (void *)(uintptr_t)stall_current_queue();
    // Dispatch assigns a queue to every thread. That of a custom executor is not Swift's.
    if (!queue || strcmp(dispatch_queue_get_label(queue), "Swift global concurrent queue") != 0) return false;
    stall_jobs_learn_task();
    __atomic_store_n(&queues[priority], queue, __ATOMIC_RELEASE);
    return true;
}

void stall_jobs_forget_queues(void) {
    for (int i = 0; i < PRIORITIES; i++) __atomic_store_n(&queues[i], NULL, __ATOMIC_RELEASE);
}
