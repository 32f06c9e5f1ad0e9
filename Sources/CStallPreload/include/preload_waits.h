// Finds those of a thread's waits that are its loop's. Pure but for what it reads of descriptors: it takes no clock and
// no lock, and knows nothing of the agent.
//
// The program does not declare its loop, so it is found by the waits that come back. In doubt a wait is the loop's: a stall may be missed,
// but a rest is not called one.
#pragma once
#include "../../CEpollDoor/door.h"

/// How likely it is that a wait is a loop's.
enum {
    WAIT_FOR_NOTHING,  ///< no descriptor: a sleep
    WAIT_FOR_ONE,      ///< one connection, pipe or terminal: a client's wait for its answer
    WAIT_FOR_SOURCE,   ///< one descriptor that only announces events: an eventfd, a listening socket
    WAIT_FOR_SEVERAL,
    WAIT_FOR_SET,      ///< epoll
};

enum {
    WAIT_FILES = 8,
    /// A wait that came back this often, from the same call with the same frame, is a loop's.
    ENOUGH_RETURNS = 3,
};

/// A call as the interposed function sees it.
typedef struct {
    door_identity call;
    const int *descriptors;  ///< `stride` bytes apart
    size_t count, stride;
    door_place place;
} wait_call;

/// A wait that was seen, and how often it came back.
typedef struct {
    door_identity call;  ///< kind 0: none
    int32_t strength;    ///< WAIT_FOR_*
    int32_t file_count;
    int32_t files[WAIT_FILES];
    door_place place;
    uint32_t returns;    ///< from `place`, one after another
    uint32_t total;
} seen_wait;

typedef struct {
    seen_wait loop;    ///< what is taken for the loop's
    seen_wait former;  ///< what was before: an inner loop may have replaced it for a while
    seen_wait other;   ///< the last one that was not
    uint64_t file_ids[WAIT_FILES];  ///< what the loop's descriptors are: their numbers are used again
} thread_waits;

/// Whether this is the wait for events of the loop that it has made all the time: for the same epoll set, from the same call, and
/// none but it since. Then it is noted. Nearly all of a busy server's waits.
static inline bool waits_note_again(thread_waits *waits, door_identity call, door_place place) {
    seen_wait *loop = &waits->loop;
    if (call.kind != DOOR_EPOLL || loop->call.kind != DOOR_EPOLL || loop->call.key != call.key) return false;
    if (loop->place.frame != place.frame || loop->place.caller != place.caller) return false;
    if (waits->other.call.kind != 0 || loop->total == UINT32_MAX) return false;
    loop->returns++;
    loop->total++;
    return true;
}

/// Notes a wait that begins. Returns whether the loop rests in it; otherwise it is work.
bool waits_note(thread_waits *waits, const wait_call *call);
/// Whether none of the descriptors that the loop waited for is open any more. Any thread.
bool waits_are_over(const thread_waits *waits);
