// A one-time rendezvous of two threads: one waits until the other has done something, or has dropped it undone.

internal import Glibc

/// Waits for a ``Promise``.
final class Completion: @unchecked Sendable {
    private enum Outcome { case done, dropped }

    // A mutex and a condition at fixed addresses guard `outcome`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var outcome: Outcome?

    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// True when it was done, false when it was dropped.
    func wait() -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let outcome { return outcome == .done }
            pthread_cond_wait(condition, mutex)
        }
    }

    /// Ends every wait, now and later. The first outcome counts.
    func finish(done: Bool) {
        pthread_mutex_lock(mutex)
        if outcome == nil { outcome = done ? .done : .dropped }
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }
}

/// The duty to finish a ``Completion``; releasing it unfinished reports that.
final class Promise: Sendable {
    private let completion: Completion

    init(_ completion: Completion) { self.completion = completion }

    deinit { completion.finish(done: false) }

    func fulfil() { completion.finish(done: true) }
}
