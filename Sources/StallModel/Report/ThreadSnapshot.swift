// Another thread of the process, captured while the watched one was stalled.

/// Why a report contains a thread besides the stalled one. The raw values are stored; never renumber them.
public enum ThreadRole: UInt8, Hashable, Sendable {
    /// It holds the lock that the stalled thread, or the previous holder in the chain, waits for.
    case holder = 0
    /// It belongs to the pool that is exhausted.
    case member = 1
    /// The app configured all threads.
    case other = 2
}

/// One snapshot of another thread.
public struct ThreadSnapshot: Hashable, Sendable {
    public var thread: ThreadID
    /// The thread's name in the kernel (`comm`), when it could be read.
    public var name: String?
    public var role: ThreadRole
    /// How the stack was captured; nil if the capture failed.
    public var method: CaptureMethod?
    /// The stack is deeper than what was recorded.
    public var isTruncated: Bool
    /// Why there is no stack, as a clause; nil if there is one.
    public var failure: String?
    /// The stack as locations, innermost first.
    package var locations: [CodeLocation]
    /// The stack as functions, innermost first; empty before symbolication.
    public var frames: [Frame]

    package init(
        thread: ThreadID, name: String?, role: ThreadRole, method: CaptureMethod?,
        isTruncated: Bool = false, failure: String? = nil, locations: [CodeLocation] = [],
        frames: [Frame] = []
    ) {
        self.thread = thread
        self.name = name
        self.role = role
        self.method = method
        self.isTruncated = isTruncated
        self.failure = failure
        self.locations = locations
        self.frames = frames
    }
}
