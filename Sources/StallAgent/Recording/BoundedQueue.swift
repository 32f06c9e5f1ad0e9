// Hands work from one thread to another. It never waits for room: if it is full, the newest item is dropped and
// counted. It locks and allocates, so the watchdog must not use it (HandoverRing.swift).

internal import Glibc

/// A first-in first-out queue of limited size between two threads of the agent.
final class BoundedQueue<Item: Sendable>: @unchecked Sendable {
    // Unchecked because the compiler does not see that `mutex` guards all mutable state.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var items: [Item] = []
    private var isClosed = false
    private var dropped = 0
    private let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        items.reserveCapacity(capacity)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// Adds an item, or replaces the one that it supersedes. Drops it if the queue is full.
    func push(_ item: Item, superseding isSuperseded: (Item) -> Bool = { _ in false }) {
        locked {
            if let index = items.firstIndex(where: isSuperseded) {
                items[index] = item
            } else if items.count < capacity, !isClosed {
                items.append(item)
                pthread_cond_signal(changed)
            } else {
                dropped += 1
            }
        }
    }

    /// Adds an item if there is room; false otherwise, and then nothing is counted as lost: the caller still has it.
    func offer(_ item: Item) -> Bool {
        locked {
            guard items.count < capacity, !isClosed else { return false }
            items.append(item)
            pthread_cond_signal(changed)
            return true
        }
    }

    /// Waits for an item; nil when the queue is closed and empty.
    func pop() -> Item? {
        locked {
            while items.isEmpty, !isClosed { pthread_cond_wait(changed, mutex) }
            return items.isEmpty ? nil : items.removeFirst()
        }
    }

    /// The next item without waiting, if any.
    func poll() -> Item? { locked { items.isEmpty ? nil : items.removeFirst() } }

    var isEmpty: Bool { locked { items.isEmpty } }

    /// Makes `pop` return the remaining items, then nil.
    func close() {
        locked {
            isClosed = true
            pthread_cond_broadcast(changed)
        }
    }

    /// The number of items dropped since the last call.
    func takeDropped() -> Int {
        locked {
            defer { dropped = 0 }
            return dropped
        }
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
