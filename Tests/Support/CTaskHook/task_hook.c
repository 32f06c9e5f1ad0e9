#include "task_hook.h"

typedef __attribute__((swiftcall)) void (*enqueue_function)(void *);
typedef __attribute__((swiftcall)) void (*enqueue_hook)(void *, enqueue_function);
extern enqueue_hook swift_task_enqueueGlobal_hook;

static enqueue_hook before;
static uint64_t count;

static __attribute__((swiftcall)) void enqueue(void *job, enqueue_function original) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (before) return before(job, original);
    original(job);
}

void task_hook_set(void) {
    before = swift_task_enqueueGlobal_hook;
    swift_task_enqueueGlobal_hook = enqueue;
}

uint64_t task_hook_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

bool task_hook_is_set(void) { return swift_task_enqueueGlobal_hook != 0; }
