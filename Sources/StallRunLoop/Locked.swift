// A value behind a mutex. Not Synchronization.Mutex, whose waiting ThreadSanitizer cannot see in this toolchain: it
// reports races that are none, and apps that embed the loop would see them.

internal import Glibc

/// A value that one thread at a time may touch: the mutex protects what it points to. Not recursive.
struct Locked<Value>: ~Copyable, @unchecked Sendable {
    private let lock = LoopLock()
    private let value: UnsafeMutablePointer<Value>

    init(_ value: Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    borrowing func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&value.pointee)
    }

    /// Nil when another thread has it at this moment.
    borrowing func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
        guard lock.tryLock() else { return nil }
        defer { lock.unlock() }
        return body(&value.pointee)
    }

    /// See ``LoopLock/lockForFork()``.
    borrowing func lockForFork() -> Bool { lock.lockForFork() }
    borrowing func unlockAfterFork() { lock.unlock() }
    /// The value, for the one that has the lock by `lockForFork`.
    borrowing func heldForFork<Result>(_ body: (inout Value) -> Result) -> Result {
        body(&value.pointee)
    }
}
