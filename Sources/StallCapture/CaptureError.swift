// What can keep a stack from being captured.

package import StallModel

/// Why a stack could not be captured. Every case is an operating condition; bugs trap instead.
package enum CaptureError: Error, Equatable, Sendable {
    /// The thread ended; its id may belong to another one by now.
    case threadEnded(ThreadID)
    /// The thread was running and SIGPROF is not ours to send: the app owns it, or it was not wanted.
    case running(ThreadID)
    /// The thread neither answered nor held still: signal blocked, starved, or waking all the time.
    case timedOut(ThreadID, after: Duration)
    /// A system call failed. `call` is its C name, so that the message can be searched for.
    case system(call: String, errno: CInt)
}

extension CaptureError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .threadEnded(let id): "thread \(id.rawValue) ended before its stack was captured"
        case .running(let id):
            "thread \(id.rawValue) was running, and SIGPROF is not the agent's to send"
        case .timedOut(let id, let limit): "thread \(id.rawValue) did not answer within \(limit)"
        case .system(let call, let errno): "\(call) failed with errno \(errno)"
        }
    }
}
