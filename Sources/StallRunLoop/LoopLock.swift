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
}
