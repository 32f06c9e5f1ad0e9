// One stall of one loop: what the agent writes, the store keeps and stallctl shows.

/// Where a stall is in its life. The raw values are stored; never renumber them.
public enum StallState: UInt8, Hashable, Sendable {
    /// It lasts; the duration is what it has reached.
    case open = 0
    /// The loop recovered; the duration is final.
    case ended = 1
    /// The process died in it (a hang); the duration is what it had reached.
    case hang = 2
}

/// Whose fault the delay is. Only `stalled` is ranked. The raw values are stored; never renumber them.
public enum StallVerdict: UInt8, Hashable, Sendable {
    /// The loop's own work took that long.
    case stalled = 0
    /// The thread was ready to run and got no CPU.
    case starved = 1
    /// The whole process was stopped: SIGSTOP, suspend, a frozen cgroup, a paused machine.
    case stopped = 2
    /// The cgroup's CPU quota was used up.
    case throttled = 3
    /// A debugger was attached.
    case debugger = 4
    /// The loop never waited for seconds, although no single callout took long.
    case saturated = 5
}

/// What the loop was running when it stalled. The raw values are stored; never renumber them.
public enum LoopPhase: UInt8, Hashable, Sendable {
    /// Nothing that the loop called: between callouts, or a kind the loop does not publish.
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

/// One look at the stalled thread.
public struct Sample: Hashable, Sendable {
    /// When it was taken, from the start of the stall.
    public var offset: Duration
    /// The part of the stall that it stands for.
    public var weight: Duration
    /// The loop had moved on before the capture was complete: never blamed.
    public var isLate: Bool
    /// The thread.
    public var thread: ThreadID
    /// How the stack was taken; nil when it could not be taken.
    public var method: CaptureMethod?
    /// The stack went deeper than what is kept here.
    public var isTruncated: Bool
    /// What taking it cost the agent.
    public var captureCost: Duration
    /// Why there is no stack, in a clause; nil when there is one.
    public var failure: String?
    /// The stack as places, innermost first. Stored first, and always.
    package var locations: [CodeLocation]
    /// The stack as functions, innermost first; inlined ones before the frame they were inlined into.
    /// Empty until it is symbolized.
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
    /// The same while it lasts, after it ended, and in every store it is ingested into.
    public var id: UniqueID
    /// The process it happened in.
    public var run: ProcessRun
    /// The name the loop is watched under.
    public var loop: String
    /// The run-loop mode it was in.
    public var mode: String
    /// What kind of callout was running.
    public var phase: LoopPhase
    /// The label of `withActivity` that was set, if any.
    public var activity: String?
    /// When it began, on the wall clock.
    public var start: UnixTime
    /// How long it has lasted, or lasted in the end.
    public var duration: Duration
    /// The CPU time that its thread used in it.
    public var cpuTime: Duration
    /// The threshold it crossed.
    public var threshold: Duration
    /// How late the watchdog noticed that the threshold was crossed.
    public var detectionDelay: Duration
    /// Where it is in its life.
    public var state: StallState
    /// What ended it; nil while it lasts, and where it is not known.
    public var ending: StallEnding?
    /// Whose fault it is.
    public var verdict: StallVerdict
    /// What was seen on the stalled thread, in order of time.
    public var samples: [Sample]
    /// Why it stalled; nil when nothing looked for a cause.
    public var cause: StallCause?
    /// Other threads: the holder of the lock, the members of a pool, or all that the app asked for.
    public var threads: [ThreadSnapshot]
    /// Threads that there was neither room nor time to look at.
    public var skippedThreadCount: Int
    /// What captures and names have cost the agent, as of the last time the report was written.
    public var agentTime: Duration

    package init(
        id: UniqueID, run: ProcessRun, loop: String, mode: String, phase: LoopPhase,
        activity: String? = nil,
        start: UnixTime, duration: Duration, cpuTime: Duration = .zero, threshold: Duration,
        detectionDelay: Duration = .zero, state: StallState, ending: StallEnding? = nil,
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
        self.threshold = threshold
        self.detectionDelay = detectionDelay
        self.state = state
        self.ending = ending
        self.verdict = verdict
        self.samples = samples
        self.cause = cause
        self.threads = threads
        self.skippedThreadCount = skippedThreadCount
        self.agentTime = agentTime
    }

    /// The places on all its stacks, the stalled thread's first.
    package var locations: [CodeLocation] {
        samples.flatMap(\.locations) + threads.flatMap(\.locations)
    }
}
