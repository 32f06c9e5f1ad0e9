#define _GNU_SOURCE
#include "door_loop.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

door_loop door_loop_make(void) {
    door_loop loop = {eventfd(0, EFD_NONBLOCK), epoll_create1(0), 0};
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(loop.set, EPOLL_CTL_ADD, loop.descriptor, &event);
    return loop;
}

__attribute__((noinline)) void door_loop_wait(door_loop *loop, int call, int milliseconds) {
    struct epoll_event event;
    struct pollfd polled = {loop->descriptor, POLLIN, 0};
    struct timespec limit = {0, milliseconds * 1000000L};
    struct timeval time = {0, milliseconds * 1000L};
    loop->rounds++;
    switch (call) {
    case DOOR_LOOP_EPOLL: epoll_wait(loop->set, &event, 1, milliseconds); break;
    case DOOR_LOOP_EPOLL_MASK: epoll_pwait(loop->set, &event, 1, milliseconds, NULL); break;
    case DOOR_LOOP_POLL: poll(&polled, 1, milliseconds); break;
    case DOOR_LOOP_PPOLL: ppoll(&polled, 1, &limit, NULL); break;
    case DOOR_LOOP_SELECT: select(0, NULL, NULL, NULL, &time); break;
    }
}

void door_loop_replace_set(door_loop *loop, int keeps) {
    int before = loop->set;
    loop->set = epoll_create1(0);
    if (!keeps) close(before);
}

__attribute__((noinline)) void door_loop_wait_elsewhere(int milliseconds) {
    volatile char room[256] = {0};
    struct epoll_event event;
    int set = epoll_create1(0);
    epoll_wait(set, &event, 1, milliseconds);
    close(set);
    room[0] = room[1];
}

static void poll_a_little(int number) {
    (void)number;
    poll(NULL, 0, 20);
}

void door_loop_poll_in_handler(int is_alternate) {
    static char alternate[1 << 16];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_handler = poll_a_little, .sa_flags = SA_RESTART};
    if (is_alternate && sigaltstack(&stack, NULL) == 0) action.sa_flags |= SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
}

int door_loop_wait_in_child(door_loop *loop) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++) door_loop_wait(loop, DOOR_LOOP_EPOLL, 1);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}
