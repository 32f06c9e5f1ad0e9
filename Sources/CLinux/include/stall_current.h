// The beacon of the calling thread's work: of its loop, or of the job that it runs. Read on the thread itself, where it makes
// a call that may block (CBlockingCalls).
#pragma once
#include "stall_beacon.h"

extern __thread stall_beacon *_Nullable stall_current_beacon __attribute__((tls_model("initial-exec")));

/// A run begins on the calling thread. Returns the beacon to restore when it ends, before it is released.
static inline stall_beacon *_Nullable stall_current_enter(stall_beacon *_Nullable beacon) {
    stall_beacon *outer = stall_current_beacon;
    stall_current_beacon = beacon;
    return outer;
}
static inline void stall_current_restore(stall_beacon *_Nullable outer) { stall_current_beacon = outer; }

/// The calling thread has work of its own on this beacon from now on, in between runs. Keeps a reference to it until the
/// thread ends or keeps another. May allocate.
void stall_current_keep(stall_beacon *_Nonnull beacon);
