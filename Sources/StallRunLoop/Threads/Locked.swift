// A value behind a lock of its own, in one piece of memory. The agent's too: why not Synchronization.Mutex, see LoopLock.

/// A value that one thread at a time may touch: the lock protects what it points to. Not recursive. For a short time: no
/// callout while it is held.
package struct Locked<Value>: ~Copyable, @unchecked Sendable {
    private let value: UnsafeMutablePointer<Value>
    /// Behind the value, not at its address: a change of the value would count as one of the word, which others read.
    private let word: LockWord

    package init(_ value: Value) {
        let offset = (MemoryLayout<Value>.size + 3) & ~3
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: offset + LockWord.size, alignment: max(8, MemoryLayout<Value>.alignment))
        self.value = memory.bindMemory(to: Value.self, capacity: 1)
        self.value.initialize(to: value)
        word = LockWord(at: memory + offset)
    }

    deinit {
        value.deinitialize(count: 1)
        UnsafeMutableRawPointer(value).deallocate()
    }

    @inline(__always) package borrowing func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        word.lock()
        defer { word.unlock() }
        return try body(&value.pointee)
    }

    /// Nil when another thread has it at this moment.
    package borrowing func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
        guard word.tryLock() else { return nil }
        defer { word.unlock() }
        return body(&value.pointee)
    }

    /// See ``LockWord/lockForFork()``.
    borrowing func lockForFork() -> Bool { word.lockForFork() }
    borrowing func unlockAfterFork() { word.unlock() }
    /// The value, for the one that has the lock by `lockForFork`.
    borrowing func heldForFork<Result>(_ body: (inout Value) -> Result) -> Result {
        body(&value.pointee)
    }
}
