// A loop's state, for tests.

internal import Glibc
internal import Synchronization

extension EventRunLoop {
    /// Whether its lock can be taken now. A thread that has it already would wait for itself: false after 50 ms, which
    /// no other thread has it for.
    package var isLockAvailable: Bool {
        for _ in 0..<50 {
            if lock.tryLock() {
                lock.unlock()
                return true
            }
            usleep(1_000)
        }
        return false
    }

    /// Runs `body` with its lock held, which nothing does that an app can see.
    package func whileLocked(_ body: () -> Void) {
        lock.lock()
        defer { lock.unlock() }
        body()
    }

    private static let oldWaits = Atomic<Bool>(false)
    /// Whether loops that are made from now on wait as on a kernel whose waits take no nanoseconds: with a timer descriptor.
    package static var hasOldWaits: Bool {
        get { oldWaits.load(ordering: .relaxed) }
        set { oldWaits.store(newValue, ordering: .relaxed) }
    }

    /// Whether it has Dispatch's descriptor of the main queue.
    package var servesMainQueue: Bool { mainQueueDescriptor >= 0 }

    /// Makes it ask for descriptors that it lacks at its next wait, as it does each second.
    package func forgetLastRenewal() {
        lock.lock()
        lastRenewal = 0
        lock.unlock()
    }
}
