// A loop of one descriptor, waiting by the given call.
#pragma once

typedef struct {
    int descriptor, set, rounds;
} door_loop;

enum { DOOR_LOOP_EPOLL, DOOR_LOOP_EPOLL_MASK, DOOR_LOOP_POLL, DOOR_LOOP_PPOLL, DOOR_LOOP_SELECT };

door_loop door_loop_make(void);
/// Nothing ever comes: it returns when the time is over.
void door_loop_wait(door_loop *loop, int call, int milliseconds);
/// Makes a new set for the loop, as after a fork or an error. The old one is closed or kept.
void door_loop_replace_set(door_loop *loop, int keeps);
/// Waits for a set of its own, as a call does that serves only what it waits for.
void door_loop_wait_elsewhere(int milliseconds);
/// Polls in the handler of SIGALRM, once a second, on an alternate stack or on the thread's own.
void door_loop_poll_in_handler(int is_alternate);
/// Waits in a forked child; returns its status.
int door_loop_wait_in_child(door_loop *loop);
