// What tests ask a loop about itself.

internal import Glibc

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
}
