// Detects when a loop of any library waits: epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll, select and pselect are
// interposed by definitions in the program, which call libc's. Around the wait of a watched thread they publish WAITING
// and BUSY to its beacon.
//
// Only a program that links this object has these symbols. Threads that are not watched pay one thread-local load.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_beacon.h"

/// The interposition state of one thread. Reference-counted: the thread has a reference until it ends, and each watcher
/// one.
typedef struct stall_door stall_door;

/// The calls that a loop may wait by.
#define STALL_DOOR_ANY 0
/// epoll_wait and its siblings: any other wait is work from the first one on.
#define STALL_DOOR_EPOLL 1
/// None that are intercepted here: another object decides which waits are the loop's, and reports those alone by
/// `stall_door_told_enter`.
#define STALL_DOOR_TOLD 4

/// The calling thread's door, for one more watcher: a thread has one for all its watchers. It is made if there is none,
/// or if the last watcher has closed it. NULL without memory. Close it with `stall_door_close`.
///
/// It publishes the waits of the thread's loop to its beacon. The loop is identified by its first wait: by the epoll
/// descriptor, or by the call site and the descriptors it waits for. Any other wait of the thread counts as the loop's
/// work.
stall_door *_Nullable stall_door_open(uint64_t calls);
/// Removes a watcher and its reference; without any, nothing is published any more. Any thread.
void stall_door_close(stall_door *_Nonnull door);
/// The beacon that it publishes to. It lives as long as the door; retain it to keep it longer.
stall_beacon *_Nonnull stall_door_beacon(const stall_door *_Nonnull door);
/// The loop of the calling thread begins to wait, with the frame and the return address of the call. If it returns true, call
/// `stall_door_told_leave` after the wait. False if the thread has no door, or if a signal handler waits.
bool stall_door_told_enter(bool is_instant, uintptr_t frame, uint64_t caller);
/// The wait is over. Preserves errno.
void stall_door_told_leave(bool is_instant);
/// For tests: the calling thread's waits are not observed any more, and its loop passes for waiting.
void stall_door_disable_here(void);
/// For tests: no door that is made from now on observes a wait, as where libc is not called.
void stall_door_disable(bool is_disabled);
/// How many waits of the loop were seen.
uint64_t stall_door_crossings(const stall_door *_Nonnull door);
