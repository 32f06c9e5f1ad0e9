#include "task_hook.h"

typedef __attribute__((swiftcall)) void (*enqueue_function)(void *);
typedef __attribute__((swiftcall)) void (*enqueue_hook)(void *, enqueue_function);
extern enqueue_hook swift_task_enqueueGlobal_hook;

static enqueue_hook before;
static uint64_t count;
enum { JOBS = 1 << 14 };
static struct {
    uint64_t job, count;
} jobs[JOBS];

// The entry of a job; NULL when the table is full.
static uint64_t *count_of(uint64_t job) {
    for (uint64_t i = 0; i < JOBS; i++) {
        const uint64_t place = (job / 16 + i) % JOBS;
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(&jobs[place].job, &there, job, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
            || there == job)
            return &jobs[place].count;
    }
    return 0;
}

static __attribute__((swiftcall)) void enqueue(void *job, enqueue_function original) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    uint64_t *own = count_of((uint64_t)(uintptr_t)job);
    if (own) __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
    if (before) return before(job, original);
    original(job);
}

void task_hook_set(void) {
    before = swift_task_enqueueGlobal_hook;
    swift_task_enqueueGlobal_hook = enqueue;
}

uint64_t task_hook_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

uint64_t task_hook_count_of(uint64_t job) {
    uint64_t *own = count_of(job);
    return own ? __atomic_load_n(own, __ATOMIC_RELAXED) : 0;
}

bool task_hook_is_set(void) { return swift_task_enqueueGlobal_hook != 0; }
