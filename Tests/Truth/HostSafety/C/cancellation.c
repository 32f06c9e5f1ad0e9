// Threads that are cancelled in a call, or right before it.
#define _GNU_SOURCE
#include "host_safety_calls.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    int index;
    host_enter enter;
    bool is_early;
    int ends[2], is_ready, has_cleaned;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    sem_t semaphore;
    pthread_t other;
} victim;

enum { IN_USLEEP, IN_NANOSLEEP, IN_PAUSE, IN_READ, IN_POLL, IN_SELECT, IN_EPOLL, IN_CONDITION, IN_TIMED_CONDITION, IN_SEMAPHORE,
       IN_TIMED_SEMAPHORE, IN_JOIN, IN_WAITPID, IN_ACCEPT, IN_RECV, IN_SIGWAIT, IN_FREAD, KINDS };
static const char *const kinds[KINDS + 1] = {
    "usleep", "nanosleep", "pause", "read", "poll", "select", "epoll_wait", "pthread_cond_wait", "pthread_cond_timedwait", "sem_wait",
    "sem_timedwait", "pthread_join", "waitpid", "accept", "recv", "sigwait", "fread"};

const char *host_cancellable(int index) { return kinds[index]; }

static void clean(void *context) {
    victim *own = context;
    if (own->index == IN_CONDITION || own->index == IN_TIMED_CONDITION) pthread_mutex_unlock(&own->mutex);
    __atomic_store_n(&own->has_cleaned, 1, __ATOMIC_SEQ_CST);
}

static void *live_long(void *context) {
    char byte;
    (void)!read(*(int *)context, &byte, 1);
    return NULL;
}

// Waits until it is cancelled; an early one is for nothing, or for what is there.
static void wait_as(victim *own) {
    const bool is_early = own->is_early;
    const struct timespec long_time = {is_early ? 0 : 20, is_early ? 1 : 0};
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += is_early ? 0 : 20;
    char byte;
    switch (own->index) {
        case IN_USLEEP: usleep(is_early ? 1 : 20000000); break;
        case IN_NANOSLEEP: nanosleep(&long_time, NULL); break;
        case IN_PAUSE: pause(); break;
        case IN_READ: (void)!read(own->ends[0], &byte, 1); break;
        case IN_POLL: {
            struct pollfd file = {own->ends[0], POLLIN, 0};
            poll(&file, 1, is_early ? 0 : 20000);
            break;
        }
        case IN_SELECT: {
            struct timeval time = {is_early ? 0 : 20, 0};
            select(0, NULL, NULL, NULL, &time);
            break;
        }
        case IN_EPOLL: {
            struct epoll_event event;
            const int set = epoll_create1(0);
            epoll_wait(set, &event, 1, is_early ? 0 : 20000);
            break;
        }
        case IN_CONDITION:
        case IN_TIMED_CONDITION:
            pthread_mutex_lock(&own->mutex);
            if (own->index == IN_CONDITION) {
                pthread_cond_wait(&own->condition, &own->mutex);
            } else {
                pthread_cond_timedwait(&own->condition, &own->mutex, &deadline);
            }
            break;
        case IN_SEMAPHORE: sem_wait(&own->semaphore); break;
        case IN_TIMED_SEMAPHORE: sem_timedwait(&own->semaphore, &deadline); break;
        case IN_JOIN: pthread_join(own->other, NULL); break;
        case IN_WAITPID: waitpid(-1, NULL, is_early ? WNOHANG : 0); break;
        case IN_ACCEPT: {
            const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
            const sa_family_t any = AF_UNIX;
            bind(listener, (const struct sockaddr *)&any, sizeof any);
            listen(listener, 1);
            accept(listener, NULL, NULL);
            break;
        }
        case IN_RECV: {
            int pair[2];
            socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
            recv(pair[0], &byte, 1, 0);
            break;
        }
        case IN_SIGWAIT: {
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR2);
            pthread_sigmask(SIG_BLOCK, &set, NULL);
            int number;
            sigwait(&set, &number);
            break;
        }
        case IN_FREAD: {
            FILE *stream = fdopen(dup(own->ends[0]), "r");
            (void)!fread(&byte, 1, 1, stream);
            break;
        }
    }
}

static void *be_cancelled(void *context) {
    victim *own = context;
    pthread_cleanup_push(clean, own);
    if (own->is_early) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (own->enter) own->enter();
    __atomic_store_n(&own->is_ready, 1, __ATOMIC_SEQ_CST);
    if (own->is_early) {
        while (__atomic_load_n(&own->is_ready, __ATOMIC_SEQ_CST) != 2) sched_yield();
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    }
    wait_as(own);
    pthread_cleanup_pop(0);
    return NULL;
}

static bool ends_by_cancellation(victim *own) {
    pthread_mutex_init(&own->mutex, NULL);
    pthread_cond_init(&own->condition, NULL);
    sem_init(&own->semaphore, 0, own->is_early ? 1 : 0);
    int other_ends[2];
    if (pipe(own->ends) != 0 || pipe(other_ends) != 0) return false;
    if (own->is_early) (void)!write(own->ends[1], "x", 1);
    // A child that waitpid waits for.
    pid_t child = 0;
    if (own->index == IN_WAITPID && !own->is_early && (child = fork()) == 0) {
        sleep(20);
        _exit(0);
    }
    pthread_create(&own->other, NULL, live_long, &other_ends[0]);
    if (own->index == IN_JOIN && own->is_early) (void)!write(other_ends[1], "x", 1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, be_cancelled, own) != 0) return false;
    while (!__atomic_load_n(&own->is_ready, __ATOMIC_SEQ_CST)) usleep(100);
    if (!own->is_early) usleep(3000);
    pthread_cancel(thread);
    __atomic_store_n(&own->is_ready, 2, __ATOMIC_SEQ_CST);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 5;
    void *result = NULL;
    const bool has_ended = pthread_timedjoin_np(thread, &result, &deadline) == 0;
    if (child) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return has_ended && result == PTHREAD_CANCELED && own->has_cleaned;
}

bool host_cancel_in_call(int index, host_enter enter) {
    victim *own = calloc(1, sizeof *own);
    own->index = index;
    own->enter = enter;
    return ends_by_cancellation(own);
}

bool host_cancel_before_call(int index, host_enter enter) {
    victim *own = calloc(1, sizeof *own);
    own->index = index;
    own->enter = enter;
    own->is_early = true;
    return ends_by_cancellation(own);
}
