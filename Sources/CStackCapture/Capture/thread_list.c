#define _GNU_SOURCE
// The threads of this process.
#include "stack_capture.h"
#include "stall_numbers.h"
#include "stall_task.h"

// The kernel lists them in order of creation, which is nearly the order of their ids.
static void insert(int32_t *ids, uint32_t count, int32_t id) {
    uint32_t at = count;
    while (at > 0 && ids[at - 1] > id) {
        ids[at] = ids[at - 1];
        at--;
    }
    ids[at] = id;
}

uint32_t stall_threads_list(int32_t *ids, uint32_t capacity, uint32_t *total) {
    stall_numbers threads;
    uint32_t count = 0;
    *total = 0;
    if (!stall_numbers_open(&threads, "/proc/self/task")) return 0;
    for (int32_t number; (number = stall_numbers_next(&threads)) > 0;) {
        const int32_t id = stall_task_thread(number);
        if (id <= 0) continue;
        (*total)++;
        if (count < capacity) insert(ids, count++, id);
    }
    stall_numbers_close(&threads);
    return count;
}
