package import StallModel

/// Why a stack could not be captured. Every case is an operating condition; bugs trap instead.
package enum CaptureError: Error, Equatable, Sendable {
    /// The thread ended; another thread may have its id by now.
    case threadEnded(ThreadID)
    /// The thread was running and may not be signalled: the app has handlers for both signals, or signals are disabled.
    case running(ThreadID)
    /// The thread was running and blocks both signals. A pending signal could end the program that it executes next.
    case blocksSignals(ThreadID)
    /// The thread neither answered nor stayed blocked: starved, or waking all the time.
    case timedOut(ThreadID, after: Duration)
    /// The thread has not answered yet: it executes no user code, for example in a long system call. Its answer will be
    /// valid for this moment too; read it with ``StackSampler/copyLateStack(of:)``.
    case answersLater(ThreadID)
    /// The thread was blocked and `/proc` does not show where: the process is not dumpable, or the file does not exist.
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
