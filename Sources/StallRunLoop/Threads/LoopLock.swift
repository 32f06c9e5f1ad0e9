// The lock of a loop, and of what is behind it: one word in memory. Not a pthread mutex: an iteration takes several,
// and the calls cost a fifth of it. Not Synchronization.Mutex, whose waiting ThreadSanitizer cannot see in this
// toolchain: it reports races that are none, and apps that embed the loop would see them. It sees the atomic operations
// below.

internal import CLinux
internal import Glibc
internal import Synchronization

/// A lock at a fixed address. Not recursive: no callout, and no release of a user's object, while it is held. Separate
/// `lock` and `unlock`, because a run holds it from iteration to iteration and releases it around every callout;
/// closures that end where they begin cannot do that.
struct LoopLock: ~Copyable, @unchecked Sendable {
    private let word: LockWord
    /// A cache line of its own: its neighbors are not fetched again whenever another thread tries the lock.
    private static var line: Int { 64 }

    init() {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.line, alignment: Self.line)
        word = LockWord(at: memory)
    }

    deinit { word.memory.deallocate() }

    @inline(__always) borrowing func lock() { word.lock() }
    @inline(__always) borrowing func tryLock() -> Bool { word.tryLock() }
    @inline(__always) borrowing func unlock() { word.unlock() }

    /// See ``LockWord/lockForFork()``.
    borrowing func lockForFork() -> Bool { word.lockForFork() }
}

/// The word of a lock, in memory that its owner allocates and frees.
struct LockWord {
    static var size: Int { MemoryLayout<Atomic<UInt32>>.size }

    private static var free: UInt32 { 0 }
    private static var taken: UInt32 { 1 }
    /// Taken, and another thread may sleep until it is free.
    private static var awaited: UInt32 { 2 }

    let memory: UnsafeMutableRawPointer
    private let word: UnsafeMutablePointer<Atomic<UInt32>>

    init(at memory: UnsafeMutableRawPointer) {
        self.memory = memory
        word = memory.bindMemory(to: Atomic<UInt32>.self, capacity: 1)
        word.initialize(to: Atomic(Self.free))
    }

    @inline(__always) func lock() {
        if !tryLock() { lockSlowly() }
    }

    @inline(__always) func tryLock() -> Bool {
        word.pointee.compareExchange(
            expected: Self.free, desired: Self.taken, ordering: .acquiring
        ).exchanged
    }

    /// The owner has it for microseconds: a short look may save a sleep. A thread that has slept takes the lock as
    /// awaited, because others may sleep still.
    @inline(never) private func lockSlowly() {
        for _ in 0..<40 {
            stall_word_pause()
            if word.pointee.load(ordering: .relaxed) == Self.free && tryLock() { return }
        }
        while word.pointee.exchange(Self.awaited, ordering: .acquiring) != Self.free {
            stall_word_wait(memory, Self.awaited)
        }
    }

    @inline(__always) func unlock() {
        let old = word.pointee.exchange(Self.free, ordering: .releasing)
        if old == Self.awaited { stall_word_wake_one(memory) }
    }

    /// Takes it for the time of a fork, so that the child does not get it from a thread that it does not have. False
    /// when it stays taken: a fork in a signal handler may have interrupted the thread that has it, or several threads
    /// fork at once, each after a wait of its own.
    func lockForFork() -> Bool {
        if tryLock() { return true }
        let deadline = stall_monotonic_ns() + Self.longestWaitOfFork_ns
        var looks = 0
        while stall_monotonic_ns() < deadline {
            if looks < 100 { sched_yield() } else { stall_word_nap() }
            looks += 1
            if tryLock() { return true }
        }
        return false
    }

    private static var longestWaitOfFork_ns: UInt64 { 500_000_000 }
}
