/// Why a loop could not do its work. Every case is an operating condition; bugs trap instead.
public enum LoopError: Error, Equatable, Sendable {
    /// Waiting for a block on the loop's own thread would wait forever.
    case wouldDeadlock
    /// The loop's thread ended, or was stopped, before it took the work.
    case stopped
    /// A system call failed. `call` is its C name, so that the message can be searched for.
    case system(call: String, errno: CInt)
}

extension LoopError: CustomStringConvertible {
    /// One plain clause.
    public var description: String {
        switch self {
        case .wouldDeadlock: "a loop's own thread cannot wait for the loop"
        case .stopped: "the loop's thread has stopped"
        case .system(let call, let errno): "\(call) failed with errno \(errno)"
        }
    }
}
