// libstallwaits.so: the interposed wait functions (CWaitCalls) for programs in C. Only a program that calls
// `stall_agent_watch_waits` is linked with it, so only there are they found before libc's. The agent has the doors, in
// libstallagent.so.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>

#include "../CEpollDoor/outer_door.h"
#include "stall_waits.h"

typedef int (*poll_call)(struct pollfd *, nfds_t, int);

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD bool is_trial;
OF_THREAD bool has_passed;

// Always NULL: the agent has the thread's door.
__thread stall_door *door_of_thread __attribute__((tls_model("initial-exec"), visibility("hidden"))) = NULL;

static stall_door *find_door(void) {
    if (__builtin_expect(!is_trial, 1)) return stall_agent_door_here();
    has_passed = true;
    return NULL;
}

stall_door *(*const door_find)(void) = find_door;

bool door_enter(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, bool is_instant,
    door_place place) {
    return stall_agent_door_enter(
        door, call.kind, call.key, descriptors, count, stride, is_instant, place.frame, place.caller);
}

void door_leave(stall_door *door, bool is_instant) { stall_agent_door_leave(door, is_instant); }

// Whether a library's call of poll arrives in this object: not if it was loaded by dlopen, behind libc.
static bool are_interposed(void) {
    poll_call first = (poll_call)dlsym(RTLD_DEFAULT, "poll");
    if (!first) return false;
    is_trial = true;
    has_passed = false;
    first(NULL, 0, 0);
    is_trial = false;
    return has_passed;
}

stall_watched_waits *stall_agent_watch_waits(stall_agent *agent, const char *name, uint32_t threshold_ms) {
    return are_interposed() ? stall_agent_open_door(agent, name, threshold_ms) : NULL;
}
