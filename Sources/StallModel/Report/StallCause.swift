// Why a stall happened, and the evidence for it.

/// The activity of a stalled thread. The raw values are stored; never renumber them.
public enum CauseClass: UInt8, CaseIterable, Hashable, Sendable {
    /// The evidence is inconclusive.
    case unknown = 0
    /// It computed.
    case cpu = 1
    /// It waited for a lock, a condition or a semaphore of its own process.
    case lock = 2
    /// It waited for a file or a directory.
    case disk = 3
    /// It waited for a peer on another machine, or for the resolver.
    case network = 4
    /// It waited for another process or thread through a pipe, a local socket or a child's end.
    case ipc = 5
    /// It called a sleep function.
    case sleep = 6
    /// It waited for memory to be read or reclaimed.
    case pageFault = 7
    /// It was runnable but got no CPU.
    case starved = 8
    /// The cgroup's CPU quota was used up.
    case throttled = 9
    /// The whole process was stopped.
    case stopped = 10

    /// The word in tables, JSON and filters: `page-fault`, else the case's name.
    public var word: String {
        switch self {
        case .unknown: "unknown"
        case .cpu: "cpu"
        case .lock: "lock"
        case .disk: "disk"
        case .network: "network"
        case .ipc: "ipc"
        case .sleep: "sleep"
        case .pageFault: "page-fault"
        case .starved: "starved"
        case .throttled: "throttled"
        case .stopped: "stopped"
        }
    }

    /// The inverse of `word`; nil for any other text.
    public init?(word: String) {
        guard let cause = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = cause
    }
}

/// The part of a stall that one class accounts for.
public struct CauseShare: Hashable, Sendable {
    public var cause: CauseClass
    /// From 0 to 1; the shares of a stall add up to 1.
    public var fraction: Double

    package init(_ cause: CauseClass, _ fraction: Double) {
        self.cause = cause
        self.fraction = fraction
    }
}

/// One fact that supports a cause, for display: `system call`, `fsync(7)`.
public struct CauseEvidence: Hashable, Sendable {
    public var name: String
    public var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The holder of the lock that a stalled thread waited for. The holder's stack is among the report's threads.
public struct LockHolder: Hashable, Sendable {
    public var thread: ThreadID
    /// The thread's name in the kernel (`comm`), when it could be read.
    public var name: String?
    /// The chain of waits leads back to the stalled thread: no thread in it can ever continue.
    public var isDeadlock: Bool

    package init(thread: ThreadID, name: String?, isDeadlock: Bool) {
        self.thread = thread
        self.name = name
        self.isDeadlock = isDeadlock
    }
}

/// The cause of one stall.
public struct StallCause: Hashable, Sendable {
    /// The class with the largest share.
    public var cause: CauseClass
    /// From 0 to 1: the confidence in the class, lowered by every piece of evidence that could not be read.
    public var confidence: Double
    /// All classes involved, the largest first.
    public var shares: [CauseShare]
    public var evidence: [CauseEvidence]
    /// Set if the lock's ABI stores an owner and it could be read.
    public var holder: LockHolder?

    package init(
        _ cause: CauseClass, confidence: Double, shares: [CauseShare] = [],
        evidence: [CauseEvidence] = [], holder: LockHolder? = nil
    ) {
        self.cause = cause
        self.confidence = confidence
        self.shares = shares
        self.evidence = evidence
        self.holder = holder
    }
}
