// Watches CFRunLoop, the loop under Foundation's RunLoop, from its own observers. Every symbol of CoreFoundation is
// weak: a program without Foundation links and runs, and is told that there is no CFRunLoop.
//
//     observer callbacks on the loop's thread -> stall_beacon
//
// Observers tell nothing while the loop runs in a mode that has none. `stall_foreign_loop_correct` is what the watchdog
// asks before it believes that such a loop is busy.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_beacon.h"

/// A CFRunLoop with our observer on it.
typedef struct stall_foreign_loop stall_foreign_loop;

/// Whether this program has CFRunLoop.
bool stall_foreign_loop_is_available(void);

/// Observes the calling thread's loop in its common modes and in every mode that it has now. NULL without CFRunLoop or
/// memory. Release with `stall_foreign_loop_detach`.
stall_foreign_loop *_Nullable stall_foreign_loop_attach(void);
/// Ends the observation, from any thread. Waits for no callout.
void stall_foreign_loop_detach(stall_foreign_loop *_Nonnull loop);

/// What the observer publishes to. It belongs to the loop.
stall_beacon *_Nonnull stall_foreign_loop_beacon(const stall_foreign_loop *_Nonnull loop);

/// Sets a busy beacon right that has not moved since it read `word`: when the loop sleeps, it says so; when the loop
/// runs in a mode that had no observer, one is added, and what is busy counts from `now_ns`. Any thread; never waits
/// for a callout. Copies the current mode's name into `mode` (64 bytes; empty between runs).
void stall_foreign_loop_correct(
    stall_foreign_loop *_Nonnull loop, uint64_t word, uint64_t now_ns, char *_Nonnull mode);

/// Whether the main thread's CFRunLoop sleeps until an event comes. False without CFRunLoop. Any thread.
bool stall_main_foreign_loop_is_waiting(void);
/// Wakes the main thread's CFRunLoop, so that it runs what was performed on it.
void stall_main_foreign_loop_wake(void);
