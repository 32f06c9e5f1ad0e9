#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "stall_sites.h"

volatile int64_t site_worked;
void *volatile site_worker;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile clockid_t clock_of_worker;

static int64_t read_clock(clockid_t clock) {
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t site_own_cpu(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static void *observe(void *context) {
    for (;;) {
        if (site_worker) site_worked = read_clock(clock_of_worker);
        usleep(1000);
    }
    return context;
}

static void start(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, observe, NULL);
    pthread_detach(thread);
}

int64_t site_work_begin(void) {
    clockid_t clock;
    pthread_once(&once, start);
    pthread_getcpuclockid(pthread_self(), &clock);
    clock_of_worker = clock;
    site_worked = site_own_cpu();
    site_worker = __builtin_thread_pointer();
    return site_worked;
}

int64_t site_work_end(void) {
    site_worker = NULL;
    return site_own_cpu();
}
