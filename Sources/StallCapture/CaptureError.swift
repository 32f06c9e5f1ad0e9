// What can keep a stack from being captured.

package import StallModel

/// Why a stack could not be captured. Every case is an operating condition; bugs trap instead.
package enum CaptureError: Error, Equatable, Sendable {
    /// The thread ended; its id may belong to another one by now.
    case threadEnded(ThreadID)
    /// The thread was running and no signal is ours to send: the app has handlers for both, or they were not wanted.
    case running(ThreadID)
    /// The thread was running and blocks both signals; one that stays pending could end the next program.
    case blocksSignals(ThreadID)
    /// The thread neither answered nor held still: starved, or waking all the time.
    case timedOut(ThreadID, after: Duration)
    /// The thread has not answered yet: it executes nothing of its own, as in one long system call. Its answer will be
    /// the stack of this moment too; ``StackSampler/takeLateStack(of:)`` takes it.
    case answersLater(ThreadID)
    /// The thread was blocked and `/proc` does not show where: the process is not dumpable, or the file is not there.
    case hidden(ThreadID, isDumpable: Bool)
    /// A system call failed. `call` is its C name, so that the message can be searched for.
    case system(call: String, errno: CInt)
}

extension CaptureError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .threadEnded(let id): "thread \(id.rawValue) ended before its stack was captured"
        case .running(let id):
            "thread \(id.rawValue) was running, and SIGURG and SIGPROF are not the agent's to send"
        case .blocksSignals(let id):
            "thread \(id.rawValue) was running and blocks SIGURG and SIGPROF"
        case .answersLater(let id):
            "thread \(id.rawValue) has not answered: it was in a long system call, or got no CPU"
        case .hidden(let id, isDumpable: false):
            "thread \(id.rawValue) was blocked, and its stack cannot be read: this process is not dumpable"
        case .hidden(let id, isDumpable: true):
            "thread \(id.rawValue) was blocked, and /proc does not show where"
        case .timedOut(let id, let limit): "thread \(id.rawValue) did not answer within \(limit)"
        case .system(let call, let errno): "\(call) failed with errno \(errno)"
        }
    }
}
