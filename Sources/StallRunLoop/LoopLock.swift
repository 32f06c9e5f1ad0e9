// The lock of a loop. A plain mutex with separate lock and unlock, because a run holds it from iteration to
// iteration and lets go of it around every callout; closures that end where they begin cannot say that.

internal import Glibc

/// A mutex at a fixed address. Not recursive: no callout, and no release of a user's object, while it is held.
struct LoopLock: ~Copyable, @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    init() {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @inline(__always) borrowing func lock() { pthread_mutex_lock(mutex) }
    borrowing func tryLock() -> Bool { pthread_mutex_trylock(mutex) == 0 }
    @inline(__always) borrowing func unlock() { pthread_mutex_unlock(mutex) }

    /// Takes it for the time of a fork, so that the child does not get it from a thread that it does not have. False when it
    /// stays taken: a fork in a signal handler may have interrupted the thread that has it.
    borrowing func lockForFork() -> Bool {
        for look in 0..<1_000 {
            if tryLock() { return true }
            if look < 100 { sched_yield() } else { usleep(50) }
        }
        return false
    }
}
