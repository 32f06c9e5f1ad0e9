// An app that leaves its calls by siglongjmp, or makes others in a handler of the signal that interrupts them.
#define _GNU_SOURCE
#include "host_safety_calls.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// MARK: Jumps

static sigjmp_buf before_call;

static void jump(int number) {
    (void)number;
    siglongjmp(before_call, 1);
}

static timer_t start_alarm(int number, long ns, long every_ns) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
    const struct itimerspec time = {.it_interval = {0, every_ns}, .it_value = {0, ns}};
    timer_settime(timer, 0, &time, NULL);
    return timer;
}

bool host_jump_out_of_read(void) {
    struct sigaction action = {.sa_handler = jump};
    sigaction(SIGALRM, &action, NULL);
    int ends[2];
    if (pipe(ends) != 0) return false;
    timer_t timer = 0;
    volatile bool has_jumped = true;
    if (sigsetjmp(before_call, 1) == 0) {
        timer = start_alarm(SIGALRM, 3000000, 0);
        char byte;
        (void)!read(ends[0], &byte, 1);
        has_jumped = false;
    }
    timer_delete(timer);
    close(ends[0]);
    close(ends[1]);
    return has_jumped;
}

void host_jump_out_after(long ns) {
    static timer_t timer;
    struct sigaction action = {.sa_handler = jump};
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(before_call, 1) == 0) {
        timer = start_alarm(SIGALRM, ns, 0);
        for (;;) usleep(1);
    }
    timer_delete(timer);
}

// MARK: Handlers

static struct {
    int ends[2], runs;
    sem_t semaphore;
    pthread_mutex_t mutex;
    timer_t timer;
} storm;

static void call_in_handler(int number) {
    (void)number;
    const int saved = errno;
    char byte = 0;
    storm.runs++;
    (void)!write(storm.ends[1], &byte, 1);
    (void)!read(storm.ends[0], &byte, 1);
    sem_post(&storm.semaphore);
    while (sem_wait(&storm.semaphore) != 0) {}
    if (pthread_mutex_lock(&storm.mutex) == 0) pthread_mutex_unlock(&storm.mutex);
    usleep(1);
    errno = saved;
}

void host_storm_begin(bool on_alternate_stack) {
    if (pipe(storm.ends) != 0) abort();
    storm.runs = 0;
    sem_init(&storm.semaphore, 0, 0);
    pthread_mutex_init(&storm.mutex, NULL);
    struct sigaction action = {.sa_handler = call_in_handler, .sa_flags = SA_RESTART};
    if (on_alternate_stack) {
        enum { SIZE = 1 << 14 };
        void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const stack_t stack = {.ss_sp = memory, .ss_size = SIZE};
        sigaltstack(&stack, NULL);
        action.sa_flags |= SA_ONSTACK;
    }
    sigaction(SIGPROF, &action, NULL);
    storm.timer = start_alarm(SIGPROF, 1000000, 1000000);
}

int host_storm_end(void) {
    timer_delete(storm.timer);
    signal(SIGPROF, SIG_IGN);
    return storm.runs;
}
