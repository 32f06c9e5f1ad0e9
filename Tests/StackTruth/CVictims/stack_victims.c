#define _GNU_SOURCE
#include "stack_victims.h"

#include <alloca.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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
