// A loop of one descriptor, waiting by the given call.
#pragma once

typedef struct {
    int descriptor, set, rounds;
} door_loop;

enum { DOOR_LOOP_EPOLL, DOOR_LOOP_EPOLL_MASK, DOOR_LOOP_POLL, DOOR_LOOP_PPOLL, DOOR_LOOP_SELECT };

door_loop door_loop_make(void);
/// Nothing ever comes: it returns when the time is over.
void door_loop_wait(door_loop *loop, int call, int milliseconds);
/// Polls in the handler of SIGALRM, once a second.
void door_loop_poll_in_handler(void);
/// Waits in a forked child; returns its status.
int door_loop_wait_in_child(door_loop *loop);
