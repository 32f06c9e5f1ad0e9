// Threads that end in a callout, and make calls in the destructors of their thread-local values.
#define _GNU_SOURCE
#include "host_safety_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t keys[3];
static int calls_at_end;

static void call_at_end(void *value) {
    (void)value;
    host_call();
    int ends[2];
    char byte = 0;
    if (pipe(ends) == 0) {
        (void)!write(ends[1], &byte, 1);
        (void)!read(ends[0], &byte, 1);
        close(ends[0]);
        close(ends[1]);
    }
    pthread_mutex_lock(&shared);
    pthread_mutex_unlock(&shared);
    __atomic_fetch_add(&calls_at_end, 1, __ATOMIC_SEQ_CST);
}

static void *end_in_callout(void *context) {
    for (int i = 0; i < 2; i++) pthread_setspecific(keys[i], keys);
    ((host_enter)context)();
    // A key that is made later: its destructor runs after the agent's.
    pthread_setspecific(keys[2], keys);
    host_call();
    return NULL;
}

int host_end_threads(int count, host_enter enter) {
    calls_at_end = 0;
    for (int i = 0; i < 2; i++) pthread_key_create(&keys[i], call_at_end);
    // Watched once, so that the agent's own keys are there.
    pthread_key_create(&keys[2], call_at_end);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, end_in_callout, (void *)enter) != 0) return -1;
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 3; i++) pthread_key_delete(keys[i]);
    return calls_at_end;
}

static void *call_small(void *context) {
    ((host_enter)context)();
    host_call();
    return NULL;
}

bool host_call_on_small_stack(host_enter enter) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    // glibc takes this program's thread-local variables from it.
    enum { SMALLEST = 16 << 10, THREAD_LOCALS = 80 << 10 };
    pthread_attr_setstacksize(&attributes, SMALLEST + THREAD_LOCALS);
    const bool is_made = pthread_create(&thread, &attributes, call_small, (void *)enter) == 0;
    if (is_made) pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return is_made;
}
