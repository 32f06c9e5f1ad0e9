// Reads the state of a Dispatch queue without entering it: whether it is busy, on which thread, and whether it makes
// progress. Every symbol of Dispatch is weak.
//
// Three words of a queue are read: its state (the thread that drains it, whether it is suspended) and both ends of its
// list of waiting items. Their offsets are internal to Dispatch and are determined by an experiment on private queues.
// If that fails, no queue can be read, and `is_known` is false.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// The state of a queue at one instant.
typedef struct {
    bool is_known;      ///< false: the other fields are undefined
    bool is_suspended;  ///< or not activated yet: it runs no item
    bool is_empty;      ///< no item waits; one may be running
    int32_t drainer;    ///< gettid of the thread that drains it now; for a main queue served by a run loop always the
                        ///< main thread; 0: none, or a concurrent queue without a running barrier
    uint64_t head;      ///< the item that waits longest: while it stays, no item has begun
    uint64_t tail;      ///< the item enqueued last
} stall_queue_snapshot;

/// Determines the offsets, once. Call it before reading a queue; any thread. Waits for no other queue.
void stall_queue_prepare(void);

/// Whether ``stall_queue_prepare`` determined them.
bool stall_queue_layout_is_known(void);

/// Whether a queue's owner and its target are where they have been in every libdispatch so far; true in a process without
/// Dispatch. The first call tries it on queues of its own, without any other thread; until then the holder of a queue that
/// ``stall_queue_prepare`` was not called for is unknown.
bool stall_queue_layout_is_usual(void);

/// Reads a queue that the caller keeps alive. Costs two memory reads.
stall_queue_snapshot stall_queue_read(const void *_Nonnull queue);

/// The thread that drains the queue, or one of the queues that it targets; 0 if there is none.
int32_t stall_queue_find_drainer(const void *_Nonnull queue);

/// Whether a worker of the global queue `root` is idle. Dispatch's idle workers wait in the context that their global
/// queue points to; blocking work waits elsewhere. Costs one read from `/proc`.
bool stall_queue_worker_is_idle(const void *_Nonnull root, int32_t thread);

/// The thread that drains the queue which `waiter` waits for in `dispatch_sync`; 0 if it is not in dispatch_sync, if no
/// thread drains the queue or if that is unknown. `futex` is the word that it waits on, inside the context on its
/// stack.
int32_t stall_queue_find_sync_holder(uint64_t futex, int32_t waiter);

/// The queue that the calling code runs on, NULL without Dispatch. There is no other way to name the queue of Swift's
/// pool.
const void *_Nullable stall_current_queue(void);
