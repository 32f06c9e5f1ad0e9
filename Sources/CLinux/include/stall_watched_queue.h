// The Dispatch queues that are watched. Their items have no begin and no end that could be observed: a thread that makes a
// call which may block (CBlockingCalls) looks here whether it runs one.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Maximum number of watched queues that are found here.
#define STALL_WATCHED_QUEUE_LIMIT 256

typedef struct {
    const void *_Nullable queue;  ///< only to be compared: it may be freed by now; NULL: none that is watched
    uint8_t phase;                ///< LoopPhase of its items
} stall_watched_queue;

/// Adds a queue for a watch of it. False if there is no room.
bool stall_watched_queue_add(const void *_Nonnull queue, const void *_Nonnull watch, uint8_t phase);
void stall_watched_queue_remove(const void *_Nonnull watch);

/// The watched queue whose item the calling thread runs. Not the main queue on the main thread: all that runs there seems to
/// be the queue's, and its run loop can be watched itself. A queue at the address of one that was freed, before the watch of that
/// one has ended, differs from it by its label. Costs one load while no queue is watched; neither allocates nor locks.
stall_watched_queue stall_watched_queue_current(void);
