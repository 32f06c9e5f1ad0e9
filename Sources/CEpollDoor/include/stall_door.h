// Detects when a loop of any library waits: epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll, select and pselect are
// interposed by definitions in the program, which call libc's. Around the wait of a watched thread they publish WAITING
// and BUSY to its beacon.
//
// Only a program that links this object has these symbols. Threads that are not watched pay one thread-local load.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_beacon.h"

/// The interposition state of one thread. Reference-counted: the thread has a reference until it ends, the watcher
/// another one.
typedef struct stall_door stall_door;

/// Publishes the waits of the calling thread's loop to the beacon, replacing an earlier door of this thread. The loop
/// is identified by its first wait: by the epoll descriptor, or by the call site and the descriptors it waits for. Any
/// other wait of the thread counts as the loop's work. NULL without memory. Close it with `stall_door_close`.
stall_door *_Nullable stall_door_open(stall_beacon *_Nonnull beacon);
/// Stops publishing, and releases the watcher's reference. Any thread.
void stall_door_close(stall_door *_Nonnull door);
/// For tests: the calling thread's waits are not observed any more, and its loop passes for waiting.
void stall_door_disable_here(void);
/// For tests: no door that is opened from now on observes a wait, as where libc is not called.
void stall_door_disable(bool is_disabled);
/// How many waits of the loop were seen.
uint64_t stall_door_crossings(const stall_door *_Nonnull door);
