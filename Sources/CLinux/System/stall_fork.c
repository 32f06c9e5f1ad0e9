#define _GNU_SOURCE
#include "stall_fork.h"

#include <pthread.h>

uint32_t stall_fork_count = 0;

// A forked child of a multithreaded process may do little more than this before exec.
static void count_fork(void) { __atomic_fetch_add(&stall_fork_count, 1, __ATOMIC_RELAXED); }

static void register_once(void) { pthread_atfork(NULL, NULL, count_fork); }

void stall_fork_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}
