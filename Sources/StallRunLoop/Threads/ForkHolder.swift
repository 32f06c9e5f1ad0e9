internal import Glibc
internal import Synchronization

/// The thread that has a lock of the process for the time of its fork. Several threads may fork at once, and each calls
/// the handlers; only one has the lock.
struct ForkHolder: ~Copyable {
    private let thread = Atomic<UInt>(0)

    /// Takes the lock by `lock`, `LockWord.lockForFork()`. False if the thread does not get it, or has it: a signal handler
    /// may fork within a fork.
    borrowing func take(_ lock: () -> Bool) -> Bool {
        guard !isCurrent, lock() else { return false }
        thread.store(pthread_self(), ordering: .relaxed)
        return true
    }

    /// Whether the calling thread had the lock, which it releases then. In the child it is the same thread.
    borrowing func release() -> Bool {
        guard isCurrent else { return false }
        thread.store(0, ordering: .relaxed)
        return true
    }

    private var isCurrent: Bool { thread.load(ordering: .relaxed) == pthread_self() }
}
