#define _GNU_SOURCE
#include "call_costs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Without libdispatch's headers, as CBlockingCalls.
extern void *dispatch_semaphore_create(intptr_t);
extern intptr_t dispatch_semaphore_signal(void *);
extern intptr_t dispatch_semaphore_wait(void *, uint64_t);

static int event, ends[2], slow_ends[2], pair[2], set, listener, file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static void *dispatch;
static FILE *stream;
static struct sockaddr_in address;
static char byte;

static void *wait_long(void *context) {
    for (;;) pause();
    return context;
}

static void be_ready(void) {
    static bool is_ready;
    if (is_ready) return;
    is_ready = true;
    // In a process with one thread the kernel's lookup of descriptors takes a cheaper path, which no app has.
    pthread_t second;
    pthread_create(&second, NULL, wait_long, NULL);
    event = eventfd(1, EFD_NONBLOCK);
    file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    bool has_failed = event < 0 || file < 0 || bind(listener, (struct sockaddr *)&address, size) != 0;
    has_failed |= getsockname(listener, (struct sockaddr *)&address, &size) != 0;
    has_failed |= pipe2(ends, O_NONBLOCK) != 0 || pipe(slow_ends) != 0;
    has_failed |= socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0;
    has_failed |= sem_init(&semaphore, 0, 0) != 0;
    set = epoll_create1(0);
    dispatch = dispatch_semaphore_create(0);
    stream = fopen("/dev/null", "w");
    if (has_failed || set < 0 || !stream) abort();
}

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// MARK: Calls that do not block

static void sleep_for_nothing(void) { usleep(0); }
static void use_event(void) {
    uint64_t value = 1;
    (void)!write(event, &value, sizeof value);
    (void)!read(event, &value, sizeof value);
}
static void use_pipe(void) {
    (void)!write(ends[1], &byte, 1);
    (void)!read(ends[0], &byte, 1);
}
static void use_socket(void) {
    send(pair[0], &byte, 1, MSG_DONTWAIT);
    recv(pair[1], &byte, 1, MSG_DONTWAIT);
}
static void open_and_close(void) { close(open("/dev/null", O_RDWR)); }
static void find_file(void) {
    struct stat status;
    stat("/dev/null", &status);
}
static void lock_mutex(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
static void signal_condition(void) { pthread_cond_signal(&condition); }
static void lock_for_reading(void) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}
static void use_semaphore(void) {
    sem_post(&semaphore);
    sem_wait(&semaphore);
}
static void use_dispatch(void) {
    dispatch_semaphore_signal(dispatch);
    dispatch_semaphore_wait(dispatch, ~UINT64_C(0));
}
static void poll_once(void) {
    struct pollfd polled = {ends[0], POLLIN, 0};
    poll(&polled, 1, 0);
}
static void wait_for_events(void) {
    struct epoll_event found;
    epoll_wait(set, &found, 1, 0);
}
static void write_to_buffer(void) { fwrite(&byte, 1, 1, stream); }
static void resolve_number(void) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo("127.0.0.1", "80", &hints, &found) == 0) freeaddrinfo(found);
}
static void wait_for_no_child(void) { waitpid(-1, NULL, WNOHANG); }
static void connect_at_once(void) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(client, (struct sockaddr *)&address, sizeof address);
    close(client);
}
static void try_file_lock(void) { flock(file, LOCK_SH | LOCK_NB); }

static const struct {
    const char *name;
    void (*call)(void);
    int count;
} calls[] = {
    {"usleep(0)", sleep_for_nothing, 100},
    {"write and read, event descriptor", use_event, 4000},
    {"write and read, pipe with O_NONBLOCK", use_pipe, 4000},
    {"send and recv, MSG_DONTWAIT", use_socket, 4000},
    {"open and close, /dev/null", open_and_close, 4000},
    {"stat, a path in the kernel's cache", find_file, 4000},
    {"pthread_mutex_lock and unlock, free", lock_mutex, 100000},
    {"pthread_cond_signal, no waiter", signal_condition, 100000},
    {"pthread_rwlock_rdlock and unlock, free", lock_for_reading, 100000},
    {"sem_post and sem_wait", use_semaphore, 100000},
    {"dispatch_semaphore signal and wait", use_dispatch, 100000},
    {"poll, timeout 0", poll_once, 4000},
    {"epoll_wait, timeout 0", wait_for_events, 4000},
    {"fwrite to a buffer", write_to_buffer, 100000},
    {"getaddrinfo of a number", resolve_number, 4000},
    {"waitpid, WNOHANG", wait_for_no_child, 4000},
    {"connect, refused, O_NONBLOCK", connect_at_once, 500},
    {"flock, LOCK_NB", try_file_lock, 4000},
};

const char *cost_name(int index) {
    return index < (int)(sizeof calls / sizeof *calls) ? calls[index].name : NULL;
}

double cost_of(int index) {
    be_ready();
    for (int i = 0; i < calls[index].count / 10; i++) calls[index].call();
    const uint64_t began = now(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < calls[index].count; i++) calls[index].call();
    return (double)(now(CLOCK_THREAD_CPUTIME_ID) - began) / calls[index].count;
}

// MARK: Calls that may block

static void write_to_pipe(void) { (void)!write(slow_ends[1], &byte, 1); }
static void read_from_pipe(void) { (void)!read(slow_ends[0], &byte, 1); }
static void send_to_socket(void) { send(pair[0], &byte, 1, 0); }
static void receive_from_socket(void) { recv(pair[1], &byte, 1, 0); }
static void sleep_shortly(void) { usleep(1); }

static const struct {
    const char *name;
    void (*call)(void);
} blocking_calls[] = {
    {"write, pipe", write_to_pipe},
    {"read, pipe", read_from_pipe},
    {"send", send_to_socket},
    {"recv", receive_from_socket},
    {"usleep(1)", sleep_shortly},
};

const char *cost_blocking_name(int index) {
    return index < (int)(sizeof blocking_calls / sizeof *blocking_calls) ? blocking_calls[index].name : NULL;
}

double cost_of_blocking(int index) {
    be_ready();
    const uint64_t began = now(CLOCK_MONOTONIC);
    blocking_calls[index].call();
    return (double)(now(CLOCK_MONOTONIC) - began);
}
