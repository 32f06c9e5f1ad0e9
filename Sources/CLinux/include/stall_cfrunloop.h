// Watches CFRunLoop, the loop under Foundation's RunLoop, with its own observers. Every symbol of CoreFoundation is
// weak: a program without Foundation links and runs, and has no CFRunLoop.
//
//     observer callbacks on the loop's thread -> stall_beacon
//
// Observers are not called while the loop runs in a mode without one. So the watchdog calls
// `stall_foreign_loop_correct` before it treats such a loop as busy.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_beacon.h"

/// A CFRunLoop with the agent's observer.
typedef struct stall_foreign_loop stall_foreign_loop;

/// Whether this program has CFRunLoop.
bool stall_foreign_loop_is_available(void);

/// Observes the calling thread's loop in its common modes and in all its present modes. NULL without CFRunLoop or
/// memory. Release it with `stall_foreign_loop_detach`.
stall_foreign_loop *_Nullable stall_foreign_loop_attach(void);
/// Removes the observer, from any thread. Waits for no callout.
void stall_foreign_loop_detach(stall_foreign_loop *_Nonnull loop);

/// The beacon that the observer writes, owned by the loop.
stall_beacon *_Nonnull stall_foreign_loop_beacon(const stall_foreign_loop *_Nonnull loop);

/// Corrects a beacon that has been busy since it read `word`: publishes WAITING if the loop sleeps. If the loop runs in
/// a mode without an observer, adds one, and the busy time counts from `now_ns`. Any thread; never waits for a callout.
/// Copies the current mode's name into `mode` (64 bytes; empty between runs).
void stall_foreign_loop_correct(
    stall_foreign_loop *_Nonnull loop, uint64_t word, uint64_t now_ns, char *_Nonnull mode);

/// Whether the main thread's CFRunLoop waits for an event. False without CFRunLoop. Any thread.
bool stall_main_foreign_loop_is_waiting(void);
/// Wakes the main thread's CFRunLoop, so that it runs the blocks performed on it.
void stall_main_foreign_loop_wake(void);
