// Looks into a Dispatch queue without entering it: is it at work, on which thread, and does it get on? Every symbol of
// Dispatch is weak.
//
// A queue is three words here: its state (the thread that drains it, whether it is suspended) and both ends of its list
// of waiting items. Where they lie is Dispatch's own affair and is found out by an experiment on queues of our own;
// when that fails, nothing is known of any queue, and `is_known` says so.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// What a queue looked like at one instant.
typedef struct {
    bool is_known;      ///< false: nothing below means anything
    bool is_suspended;  ///< or not activated yet: it runs nothing, whatever waits
    bool is_empty;      ///< nothing waits in it; something may run
    int32_t drainer;    ///< gettid of the thread that runs its items now; the main thread's, always, for a main queue that
                        ///< belongs to a run loop; 0: none, or a concurrent queue that runs no barrier
    uint64_t head;      ///< the item that waits longest: while it stays, no item has begun
    uint64_t tail;      ///< the item that came last
} stall_queue_snapshot;

/// Finds out where the words lie, once. Call it before a look; from any thread. Waits for no other queue.
void stall_queue_prepare(void);

/// Looks at a queue that the caller keeps alive. Costs two memory reads.
stall_queue_snapshot stall_queue_read(const void *_Nonnull queue);

/// The thread that runs the items of the queue, or of the queues that it targets; 0 when there is none.
int32_t stall_queue_find_drainer(const void *_Nonnull queue);

/// Whether a worker of the global queue `root` sleeps until there is work for it. Dispatch's workers wait in the
/// context that their global queue points at; work that blocks waits elsewhere. Costs one read from `/proc`.
bool stall_queue_worker_is_idle(const void *_Nonnull root, int32_t thread);

/// The thread that runs the items of the queue which `waiter` waits for in `dispatch_sync`; 0 when it does not, when
/// nobody runs them or when that is not known. `futex` is the word that it waits on, inside of what it left on its
/// stack.
int32_t stall_queue_find_sync_holder(uint64_t futex, int32_t waiter);

/// The queue that the calling code runs on, NULL without Dispatch. Swift's pool is a queue that nobody else can name.
const void *_Nullable stall_current_queue(void);
