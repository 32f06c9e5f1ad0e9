// One stall of one loop: written by the agent, stored, and shown by stallctl.

/// The state of a stall. The raw values are stored; never renumber them.
public enum StallState: UInt8, Hashable, Sendable {
    /// It still lasts; the duration is as of the last update.
    case open = 0
    /// The loop recovered; the duration is final.
    case ended = 1
    /// The process died during it (a hang); the duration is as of the last update.
    case hang = 2
}

/// The verdict on a delay: whether it was the loop's own time. Only `stalled` is ranked. The raw values are stored;
/// never renumber them.
public enum StallVerdict: UInt8, Hashable, Sendable {
    /// The loop's own work took that long.
    case stalled = 0
    /// The thread was runnable but got no CPU.
    case starved = 1
    /// The whole process was stopped: SIGSTOP, suspend, a frozen cgroup, a paused machine.
    case stopped = 2
    /// The cgroup's CPU quota was used up.
    case throttled = 3
    /// A debugger was attached.
    case debugger = 4
    /// The loop never waited for seconds, although no single callout took long.
    case saturated = 5
    /// A profiler's samples: the thread was sampled, whether it stalled is unknown.
    case sampled = 6
    /// A call that may block, where the app forbids blocking, however long it took.
    case blocking = 7
    /// A stall that the app declared as meant: a migration at start, a modal dialog.
    case expected = 8
}

/// The loop's activity when it stalled. The raw values are stored; never renumber them.
public enum LoopPhase: UInt8, Hashable, Sendable {
    /// No callout: the loop was between callouts, or does not publish their kind.
    case unknown = 0
    /// An observer's callback.
    case observer = 1
    /// A performed block.
    case block = 2
    /// A version-0 source.
    case source = 3
    /// A timer.
    case timer = 4
    /// A descriptor (version-1) source.
    case descriptor = 5
    /// A block of the main dispatch queue.
    case mainQueue = 6
    /// Work that the app marked with begin and end.
    case marked = 7
}

/// One sample of the stalled thread.
public struct Sample: Hashable, Sendable {
    /// When it was taken, from the start of the stall.
    public var offset: Duration
    /// The part of the stall that it stands for.
    public var weight: Duration
    /// The loop had made progress before the capture was complete; the stack is not attributed to the stall.
    public var isLate: Bool
    /// The thread.
    public var thread: ThreadID
    /// How the stack was captured; nil if the capture failed.
    public var method: CaptureMethod?
    /// The stack is deeper than what was recorded.
    public var isTruncated: Bool
    /// The agent's time for the capture.
    public var captureCost: Duration
    /// Why there is no stack, as a clause; nil if there is one.
    public var failure: String?
    /// The stack as locations, innermost first. Stored first, and always.
    package var locations: [CodeLocation]
    /// The stack as functions, innermost first; inlined ones before the frame they were inlined into. Empty before
    /// symbolication.
    public var frames: [Frame]

    package init(
        offset: Duration, weight: Duration, isLate: Bool = false, thread: ThreadID,
        method: CaptureMethod?,
        isTruncated: Bool = false, captureCost: Duration = .zero, failure: String? = nil,
        locations: [CodeLocation] = [], frames: [Frame] = []
    ) {
        self.offset = offset
        self.weight = weight
        self.isLate = isLate
        self.thread = thread
        self.method = method
        self.isTruncated = isTruncated
        self.captureCost = captureCost
        self.failure = failure
        self.locations = locations
        self.frames = frames
    }
}

/// A stall: a watched loop was busy for at least its threshold.
public struct StallReport: Hashable, Sendable {
    /// Stays the same while the stall lasts, after it ended, and in every store that imports it.
    public var id: UniqueID
    /// The process it happened in.
    public var run: ProcessRun
    /// The target's name.
    public var loop: String
    /// The run-loop mode at the time.
    public var mode: String
    /// The kind of callout that was running.
    public var phase: LoopPhase
    /// The label set by `withActivity`, if any.
    public var activity: String?
    /// When it began, on the wall clock.
    public var start: UnixTime
    /// How long it has lasted; final when it has ended.
    public var duration: Duration
    /// The CPU time that its thread used in it.
    public var cpuTime: Duration
    /// The part of the duration in which its thread waited for a CPU or was stopped; the rest is its own time. Zero if
    /// that is negligible or unknown. For a verdict other than `stalled` this is zero: the verdict speaks for all of it.
    public var delayedTime: Duration
    /// The threshold that it exceeded.
    public var threshold: Duration
    /// How much later than the threshold it was noticed.
    public var detectionDelay: Duration
    package var outcome: StallOutcome
    /// Whether it was the loop's own time.
    public var verdict: StallVerdict
    /// The samples of the stalled thread, in chronological order.
    public var samples: [Sample]
    /// Why it stalled; nil if no cause was determined.
    public var cause: StallCause?
    /// Other threads: the holder of the lock, the members of a pool, or all threads if the app configured that.
    public var threads: [ThreadSnapshot]
    /// The number of threads left out for lack of room or time.
    public var skippedThreadCount: Int
    /// The agent's time for captures and symbolication, as of the last update of the report.
    public var agentTime: Duration

    package init(
        id: UniqueID, run: ProcessRun, loop: String, mode: String, phase: LoopPhase,
        activity: String? = nil,
        start: UnixTime, duration: Duration, cpuTime: Duration = .zero,
        delayedTime: Duration = .zero, threshold: Duration,
        detectionDelay: Duration = .zero, state: StallState,
        verdict: StallVerdict = .stalled,
        samples: [Sample] = [], cause: StallCause? = nil, threads: [ThreadSnapshot] = [],
        skippedThreadCount: Int = 0, agentTime: Duration = .zero
    ) {
        self.id = id
        self.run = run
        self.loop = loop
        self.mode = mode
        self.phase = phase
        self.activity = activity
        self.start = start
        self.duration = duration
        self.cpuTime = cpuTime
        self.delayedTime = delayedTime
        self.threshold = threshold
        self.detectionDelay = detectionDelay
        outcome = StallOutcome(state)
        self.verdict = verdict
        self.samples = samples
        self.cause = cause
        self.threads = threads
        self.skippedThreadCount = skippedThreadCount
        self.agentTime = agentTime
    }

    /// The locations on all its stacks, the stalled thread's first.
    package var locations: [CodeLocation] {
        samples.flatMap(\.locations) + threads.flatMap(\.locations)
    }
}
