// The thread that holds a lock of the process while it forks. Several threads may fork at once, and a handler before a fork
// may fork itself: each calls all handlers, and only the one that took the lock may release it.

internal import Glibc
internal import Synchronization

/// The holder of a lock of the process for the time of a fork.
struct ForkHolder: ~Copyable {
    private let thread = Atomic<UInt>(0)
    /// How many forks of that thread are within each other. Its own.
    private let depth = Atomic<Int>(0)

    /// Takes the lock by `lock`, `LockWord.lockForFork()`. False if the thread does not get it, or has it.
    borrowing func take(_ lock: () -> Bool) -> Bool {
        if isCurrent {
            depth.wrappingAdd(1, ordering: .relaxed)
            return false
        }
        guard lock() else { return false }
        depth.store(1, ordering: .relaxed)
        thread.store(pthread_self(), ordering: .relaxed)
        return true
    }

    /// Whether the calling thread had the lock, and releases it now: its outermost fork has ended, or this is a child, which
    /// has no outer one to end. In the child it is the same thread.
    borrowing func release(isChild: Bool) -> Bool {
        guard isCurrent, isChild || depth.wrappingSubtract(1, ordering: .relaxed).newValue == 0
        else { return false }
        thread.store(0, ordering: .relaxed)
        return true
    }

    private var isCurrent: Bool { thread.load(ordering: .relaxed) == pthread_self() }
}
