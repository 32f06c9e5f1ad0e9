// Serializes jobs on one central store. SQLite would allow two, but they would contend for the write lock and delete or
// archive the same files.

internal import Glibc

/// Held until released, at the latest when the process ends.
package struct JobLock: ~Copyable {
    private let descriptor: CInt

    /// Waits for another job on the same store.
    ///
    /// - Parameters:
    ///   - store: The store's path; the lock file is created beside it and never deleted.
    ///   - wait: The timeout, in seconds.
    ///   - isCancelled: Polled during the wait.
    package init(
        store: String, waitSeconds wait: Int, isCancelled: () -> Bool = { false }
    ) throws(JobError) {
        let path = store + "-lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .failed(store, errno: errno) }
        // Polls ten times a second; a thread for a blocking wait would not pay.
        var looks = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                let error = JobError.failed(path, errno: errno)
                close(descriptor)
                throw error
            }
            guard looks / 10 < wait, !isCancelled() else {
                close(descriptor)
                throw .busy(store: store, seconds: wait)
            }
            usleep(100_000)
            looks += 1
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}

/// Why a job failed.
package enum JobError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Another job held the lock until the timeout.
    case busy(store: String, seconds: Int)
    /// A system call failed on a path.
    case failed(String, errno: CInt)

    package var description: String {
        switch self {
        case .busy(let store, let seconds):
            "\(store): locked by another stallctl job; gave up after \(seconds) s and changed nothing"
        case .failed(let path, let errno): "\(path): \(String(cString: strerror(errno)))"
        }
    }
}
