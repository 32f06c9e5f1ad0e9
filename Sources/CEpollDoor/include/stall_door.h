// Sees when a loop waits, whatever library it is of: epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll, select and
// pselect are defined here, in the program, and call libc's. Around the wait of a thread that is watched its beacon
// says WAITING and BUSY.
//
// A program that links this object has these symbols; no other has. Threads that are not watched pay one thread-local
// load.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_beacon.h"

/// One thread's door. Counted: the thread has a reference until it ends, the watcher another one.
typedef struct stall_door stall_door;

/// Publishes the waits of the calling thread's loop to the beacon, in the place of an earlier door of this thread. The
/// loop is known by its first wait: by the epoll descriptor, or by the place of the call and the descriptors it waits
/// for. Everything else that waits on the thread is work of the loop's. NULL without memory. Leave with
/// `stall_door_close`.
stall_door *_Nullable stall_door_open(stall_beacon *_Nonnull beacon);
/// Ends that, from any thread.
void stall_door_close(stall_door *_Nonnull door);
/// How often the loop has come to its wait.
uint64_t stall_door_crossings(const stall_door *_Nonnull door);
