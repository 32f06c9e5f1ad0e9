// Where violations lie until a reader takes them (stall_blocking.h).
#pragma once
#include "blocking.h"

/// The work that made a call: the test that owns it, or 0 and the beacon of a loop or a worker, or a queue.
typedef struct {
    uint64_t owner;
    const void *target;
    uint8_t phase;
} blocking_work;

HIDDEN bool violations_has_owner(uint64_t owner);
/// Notes a call that has returned, with the thread's stack. Without room it is counted. Returns false if it is no call of the
/// program's, or the process is a child that has not prepared. Signals are blocked.
HIDDEN bool violations_note(const blocking_call *call, blocking_work work, uint64_t now);

/// In a forked child, the first time: those of the parent are the parent's, and a thread that is not here may have been
/// capturing. Returns false elsewhere.
HIDDEN bool violations_forget_parent(void);
/// Allocates memory, once. False without.
HIDDEN bool violations_prepare(void);
