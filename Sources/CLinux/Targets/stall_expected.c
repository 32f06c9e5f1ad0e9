#include "stall_expected.h"

#include "stall_fork.h"

__thread uint32_t stall_expected_depth __attribute__((tls_model("initial-exec"), visibility("hidden"))) = 0;

__thread uint64_t stall_expected_until_ns __attribute__((tls_model("initial-exec"), visibility("hidden"))) = 0;

static uint64_t tasks[STALL_EXPECTED_TASK_LIMIT];  // addresses; 0: free
static uint64_t limits[STALL_EXPECTED_TASK_LIMIT];  // when the scope of the task of this index ends to count
static uint32_t task_count;
static uint32_t generation;  // of the process that the tasks are of

// A forked child has its parent's entries but not their tasks, and its own tasks may get the same addresses.
static void forget_tasks_of_parent(void) {
    uint32_t known = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    const uint32_t now = stall_fork_generation();
    if (known == now
        || !__atomic_compare_exchange_n(&generation, &known, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    for (int i = 0; i < STALL_EXPECTED_TASK_LIMIT; i++) __atomic_store_n(&tasks[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&task_count, 0, __ATOMIC_RELEASE);
}

static uint64_t *find(uint64_t task) {
    for (int i = 0; i < STALL_EXPECTED_TASK_LIMIT; i++) {
        if (__atomic_load_n(&tasks[i], __ATOMIC_ACQUIRE) == task) return &tasks[i];
    }
    return 0;
}

bool stall_expected_add_task(uint64_t task, uint64_t until_ns) {
    forget_tasks_of_parent();
    if (task == 0 || find(task)) return false;
    for (int i = 0; i < STALL_EXPECTED_TASK_LIMIT; i++) {
        uint64_t none = 0;
        if (!__atomic_compare_exchange_n(&tasks[i], &none, task, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        __atomic_store_n(&limits[i], until_ns, __ATOMIC_RELEASE);
        __atomic_fetch_add(&task_count, 1, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

void stall_expected_remove_task(uint64_t task) {
    uint64_t *found = task ? find(task) : 0;
    // Forgotten in a forked child.
    if (!found) return;
    __atomic_store_n(found, 0, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&task_count, 1, __ATOMIC_RELEASE);
}

bool stall_expected_is_task(uint64_t task) {
    if (task == 0 || __atomic_load_n(&task_count, __ATOMIC_ACQUIRE) == 0) return false;
    if (__atomic_load_n(&generation, __ATOMIC_RELAXED) != stall_fork_generation()) return false;
    const uint64_t *found = find(task);
    return found && stall_monotonic_ns() < __atomic_load_n(&limits[found - tasks], __ATOMIC_ACQUIRE);
}
