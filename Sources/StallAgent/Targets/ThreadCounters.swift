// The kernel's counters of a target's thread, continuous when the work moves from one thread to another.

internal import CLinux
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
    /// The counters of earlier threads, less those of the current one from before it had the work.
    private var shift: (cpuTime: Duration, runDelay: Duration) = (.zero, .zero)
    private var total: (cpuTime: Duration, runDelay: Duration) = (.zero, .zero)

    /// When the counters were read last; nil before.
    private var lastReading: MonotonicInstant?

    /// No thread had the work at the last reading, and one that could take it waited for a CPU.
    private var lackedCPU = false

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
        lastReading = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let group = target.groupDelay()
        guard reader != nil else {
            // Without a thread the time counts, unless a thread would run the work if it got a CPU.
            lackedCPU = group?.waitsForCPU ?? (isAsked && target.isStarved())
            return ThreadEvidence(
                cpuTime: total.cpuTime, runDelay: group?.runDelay ?? total.runDelay,
                waitsForCPU: lackedCPU, throttleCount: controlGroup.throttling()?.count)
        }
        lackedCPU = false
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
        settle()
        thread = newThread
        reader = newThread.map { ThreadStatReader($0) }
        guard !isFirst, let newThread, reader != nil else { return }
        if let before = target.countersAtStart() {
            shift.cpuTime = total.cpuTime - before.cpuTime
            shift.runDelay = total.runDelay - before.runDelay
            return
        }
        // All waits for a CPU of a thread that has started since are the work's, the one before its first instruction
        // as well. Its CPU time may be other work's.
        let hasStartedSince = lastReading.map { newThread.hasStarted(since: $0) } ?? false
        shift.cpuTime = total.cpuTime - (reader?.cpuTime() ?? .zero)
        let delay = reader?.runDelay() ?? .zero
        shift.runDelay = total.runDelay - (hasStartedSince ? .zero : delay - waitOfSuccessor(delay))
    }

    /// How long the succeeding thread has waited for the CPU that the work lacked: since the last reading, or all that
    /// it ever waited, if that is less.
    private func waitOfSuccessor(_ delay: Duration) -> Duration {
        guard lackedCPU, let lastReading else { return .zero }
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        return min(max(.zero, now - lastReading), delay)
    }

    /// Adds what the thread has used and waited since the last reading, before another one has the work. The kernel adds
    /// a wait for the CPU when it is over: it may be the whole stall.
    private mutating func settle() {
        guard reader != nil else { return }
        if let now = reader?.cpuTime() { total.cpuTime = now + shift.cpuTime }
        if let delay = reader?.runDelay() { total.runDelay = delay + shift.runDelay }
    }
}

extension RegisteredThread {
    /// Whether the thread has started since that instant, or less than a clock tick before. False if unknown.
    fileprivate func hasStarted(since instant: MonotonicInstant) -> Bool {
        guard startTicks != 0 else { return false }
        let (monotonic, boot) = (stall_monotonic_ns(), stall_boot_ns())
        let age = Int64(clamping: boot) - Int64(clamping: startTicks) * Self.tick.nanoseconds
        return MonotonicInstant(nanoseconds: monotonic) - instant >= .nanoseconds(age) - Self.tick
    }

    /// `sysconf(_SC_CLK_TCK)` is 100 on every Linux.
    private static let tick = Duration.milliseconds(10)
}
