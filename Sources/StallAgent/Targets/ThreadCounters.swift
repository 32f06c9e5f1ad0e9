// The kernel's counters of a target's thread, continuous when the work moves from one thread to another.

internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel

/// The CPU time and run delay of the thread that runs the work, as totals that do not jump when the thread changes.
struct ThreadCounters: ~Copyable {
    /// The thread that ran the work at the last reading.
    private(set) var thread: RegisteredThread?
    private let target: any MonitoredTarget
    private var reader: ThreadStatReader?
    /// The counters of earlier threads, less those of the current one from before it took over.
    private var shift: (cpuTime: Duration, runDelay: Duration) = (.zero, .zero)
    private var total: (cpuTime: Duration, runDelay: Duration) = (.zero, .zero)

    private let controlGroup: ControlGroup

    init(_ target: any MonitoredTarget, _ controlGroup: ControlGroup) {
        self.target = target
        self.controlGroup = controlGroup
    }

    /// Reads the counters now.
    ///
    /// - Parameters:
    ///   - isSuspect: Whether to read everything, or only the counters.
    ///   - isAsked: Whether the target's beacon is busy: only then it matters why no thread runs the work.
    mutating func evidence(isSuspect: Bool, isAsked: Bool) -> ThreadEvidence {
        follow(target.findThread())
        let group = target.groupDelay()
        guard reader != nil else {
            // Without a thread the time counts, unless a thread would run the work if it got a CPU.
            return ThreadEvidence(
                cpuTime: total.cpuTime, runDelay: group?.runDelay ?? total.runDelay,
                waitsForCPU: group?.waitsForCPU ?? (isAsked && target.isStarved()),
                throttleCount: controlGroup.throttling()?.count)
        }
        let scheduling = isSuspect ? reader?.scheduling() : nil
        let now = isSuspect ? scheduling?.cpuTime : reader?.cpuTime()
        let delay = reader?.runDelay()
        if let now { total.cpuTime = now + shift.cpuTime }
        if let delay { total.runDelay = delay + shift.runDelay }
        return ThreadEvidence(
            cpuTime: now.map { _ in total.cpuTime },
            runDelay: group?.runDelay ?? delay.map { _ in total.runDelay },
            state: scheduling?.state,
            waitsForCPU: group?.waitsForCPU ?? (scheduling?.waitsForCPU == true),
            isTraced: isSuspect && reader?.isTraced() == true,
            throttleCount: controlGroup.throttling()?.count)
    }

    private mutating func follow(_ newThread: RegisteredThread?) {
        guard newThread != thread else { return }
        let isFirst = thread == nil && total == (.zero, .zero)
        thread = newThread
        reader = newThread.map { ThreadStatReader($0) }
        guard !isFirst, reader != nil else { return }
        shift.cpuTime = total.cpuTime - (reader?.cpuTime() ?? .zero)
        shift.runDelay = total.runDelay - (reader?.runDelay() ?? .zero)
    }
}
