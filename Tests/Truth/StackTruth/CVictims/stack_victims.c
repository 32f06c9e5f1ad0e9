#define _GNU_SOURCE
#include "stack_victims.h"

#include <alloca.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int sink;

__attribute__((noinline)) int victim_with_alloca(int count, victim_body body) {
    volatile char *room = alloca((size_t)count * 16 + 1);
    room[0] = (char)count;
    return body(count) + room[0];
}

__attribute__((noinline)) int victim_realigned(int argument, victim_body body) {
    _Alignas(64) volatile char line[64];
    line[argument & 63] = 1;
    return body(argument) + line[argument & 63];
}

__attribute__((noinline)) static int tenth(
    victim_body body, int a, int b, int c, int d, int e, int f, int g, int h, int i
) {
    return body(a + b + c + d + e + f + g + h + i) + 1;
}

__attribute__((noinline)) int victim_with_many_arguments(int argument, victim_body body) {
    return tenth(body, argument, 1, 2, 3, 4, 5, 6, 7, argument) + 2;
}

static struct {
    victim_body body;
    int argument, result;
} pending;

static void handle_on_alternate_stack(int number) {
    (void)number;
    pending.result = pending.body(pending.argument);
}

__attribute__((noinline)) int victim_on_alternate_stack(int argument, victim_body body) {
    const size_t size = 1 << 16;
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    struct sigaction action = {.sa_handler = handle_on_alternate_stack, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR2, &action, NULL);
    pending.body = body;
    pending.argument = argument;
    raise(SIGUSR2);
    return pending.result + 1;
}

__attribute__((noinline)) int victim_resolve_name(int argument) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int silent = socket(AF_INET, SOCK_DGRAM, 0);
    bind(silent, (struct sockaddr *)&address, length);
    getsockname(silent, (struct sockaddr *)&address, &length);
    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0] = address;
    _res.retrans = 300;
    struct addrinfo *found = NULL;
    return getaddrinfo("no-such-host.example.org", "80", NULL, &found) + argument;
}

static int compare(const void *left, const void *right) {
    sink = pending.body(pending.argument);
    return *(const int *)left - *(const int *)right;
}

__attribute__((noinline)) int victim_in_qsort(int argument, victim_body body) {
    int numbers[3] = {3, 1, 2};
    pending.body = body;
    pending.argument = argument;
    qsort(numbers, 3, sizeof numbers[0], compare);
    return numbers[0];
}

int victim_fork_once(void) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) _exit(0);
    while (waitpid(child, &status, 0) < 0) {}
    return status;
}

static _Thread_local volatile int signals_taken;

static void take_signal(int number) {
    (void)number;
    signals_taken++;
}

int victim_signal_itself(void) {
    static _Thread_local stack_t stack;
    struct sigaction action = {.sa_handler = take_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    if (!stack.ss_sp) {
        stack = (stack_t){.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
        sigaltstack(&stack, NULL);
        sigaction(SIGUSR2, &action, NULL);
    }
    int before = signals_taken;
    raise(SIGUSR2);
    return signals_taken - before - 1;
}

static _Thread_local volatile int own_profiling_signals;

static void take_profiling_signal(int number) {
    (void)number;
    own_profiling_signals++;
}

void stress_own_sigprof(void) {
    struct sigaction action = {.sa_handler = take_profiling_signal, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGURG, &action, NULL);
}

int stress_profile_itself(void) {
    int before = own_profiling_signals;
    raise(SIGPROF);
    return own_profiling_signals - before - 1;
}

int stress_empty_pipe(void) {
    int ends[2];
    return pipe(ends) == 0 ? ends[0] : -1;
}

int stress_epoll_on_pipe(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, stress_empty_pipe(), &event);
    return epoll;
}

int stress_epoll_wait(int epoll, int milliseconds) {
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, milliseconds);
}

static sigset_t sigurg_alone(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    return set;
}

void victim_block_sigurg(void) {
    const sigset_t set = sigurg_alone();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

uint64_t victim_run_sigurg_handler(void) {
    const sigset_t set = sigurg_alone();
    const struct timespec at_once = {0};
    struct sigaction action;
    struct timespec start, end;
    siginfo_t info;
    ucontext_t context;
    if (sigtimedwait(&set, &info, &at_once) != SIGURG) return 0;
    sigaction(SIGURG, NULL, &action);
    getcontext(&context);
    clock_gettime(CLOCK_MONOTONIC, &start);
    action.sa_sigaction(SIGURG, &info, &context);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint64_t)(end.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)(end.tv_nsec - start.tv_nsec);
}
