#define _GNU_SOURCE
#include "stall_fork.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stall_evidence.h"

uint32_t stall_fork_count = 0;

// A forked child of a multithreaded process may do little more than this before exec.
static void count_fork(void) { __atomic_fetch_add(&stall_fork_count, 1, __ATOMIC_RELAXED); }

static void register_once(void) { pthread_atfork(NULL, NULL, count_fork); }

void stall_fork_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}

void stall_fork_close(int descriptor, const char *kind) {
    stall_descriptor_snapshot snapshot;
    if (descriptor < 0 || !stall_descriptor_read(descriptor, &snapshot)) return;
    if (strcmp(snapshot.target, kind) == 0) close(descriptor);
}
