// Answers the watchdog's questions about one loop's thread, and passes what it is told on to the recorder.
// Everything here runs on the watchdog's thread, while the loop's thread may hold any lock of the app.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel

/// A stall on its way to the store: nothing symbolized yet.
struct PendingReport: Sendable {
    let id: UniqueID
    let start: UnixTime
    let loop: String
    let mode: String
    let incident: StallIncident
    let samples: [RawSample]
}

/// A stretch of a loop's watched time on its way to the store.
struct PendingMeasure: Sendable {
    let loop: String
    let threshold: Duration
    let start: UnixTime
    let measure: LoopMeasure
}

/// What the recorder is asked to do.
enum RecorderRequest: Sendable {
    case openStore
    case measured(PendingMeasure)
    case record(PendingReport)
    case limit(RateLimits, DebuggerPolicy)
}

/// The one sampler of the process, used by the watchdog's thread alone.
final class SharedSampler: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private var sampler: StackSampler

    init() throws(CaptureError) { sampler = try StackSampler() }

    func captureStack(
        of thread: RegisteredThread, within limit: Duration
    ) throws(CaptureError) -> CapturedStack {
        try sampler.captureStack(of: thread, timeout: limit)
    }
}

/// One watched loop, as the watchdog sees it.
final class LoopWitness: StallResponder, @unchecked Sendable {
    // Unchecked because only the watchdog's thread calls it after `init`.
    private let name: String
    private let thread: RegisteredThread
    private let sampler: SharedSampler?
    private let controlGroup: ControlGroupProbe
    private let modeName: @Sendable (UInt32) -> String?
    private let queue: BoundedQueue<RecorderRequest>
    private var probe: ThreadProbe
    /// The threshold that was crossed last: what a stretch of watched time was judged by.
    private var threshold: Duration
    /// The open incidents; a loop may be saturated while a callout of it is stalled.
    private var open: [Incident: (id: UniqueID, start: UnixTime)] = [:]
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, thread: RegisteredThread, sampler: SharedSampler?,
        controlGroup: ControlGroupProbe, modeName: @escaping @Sendable (UInt32) -> String?, queue: BoundedQueue<RecorderRequest>
    ) {
        self.name = name
        self.threshold = threshold
        self.thread = thread
        self.sampler = sampler
        self.controlGroup = controlGroup
        self.modeName = modeName
        self.queue = queue
        probe = ThreadProbe(thread.id)
    }

    private struct Incident: Hashable {
        var began: MonotonicInstant
        var isSaturation: Bool
    }

    func evidence(isSuspect: Bool) -> ThreadEvidence {
        guard isSuspect else {
            return ThreadEvidence(
                cpuTime: probe.cpuTime(), runDelay: probe.runDelay(),
                throttleCount: controlGroup.throttleCount())
        }
        let (before, state, now) = (probe.cpuTime(), probe.state(), probe.cpuTime())
        // The CPU clock of a thread that runs now moves between two readings.
        return ThreadEvidence(
            cpuTime: now, runDelay: probe.runDelay(), state: state,
            waitsForCPU: state == UInt8(ascii: "R") && before == now, isTraced: probe.isTraced(),
            throttleCount: controlGroup.throttleCount())
    }

    func captureStack(within limit: Duration) -> Result<CapturedStack, any Error> {
        guard let sampler else { return .failure(NoSampler()) }
        return Result { () throws in try sampler.captureStack(of: thread, within: limit) }
    }

    private struct NoSampler: Error, CustomStringConvertible {
        let description = "no memory for the sampler when the agent started"
    }

    func stallChanged(_ incident: StallIncident, samples: [RawSample]) {
        let (id, start) = identity(of: incident)
        let culprit = samples.last { !$0.isLate } ?? samples.last
        let report = PendingReport(
            id: id, start: start, loop: name,
            mode: culprit.flatMap { modeName($0.mode) } ?? "", incident: incident, samples: samples)
        queue.push(.record(report)) {
            if case .record(let earlier) = $0 { earlier.id == id } else { false }
        }
    }

    func measured(_ measure: LoopMeasure) -> Bool {
        queue.offer(
            .measured(
                PendingMeasure(
                    loop: name, threshold: threshold, start: wallClock(at: measure.began),
                    measure: measure)))
    }

    /// One incident, one id, from its first word to its last.
    private func identity(of incident: StallIncident) -> (UniqueID, UnixTime) {
        let key = Incident(
            began: incident.began, isSaturation: incident.verdict == .saturated)
        threshold = incident.threshold
        defer { if incident.hasEnded { open[key] = nil } }
        if let known = open[key] { return known }
        let start = wallClock(at: incident.began)
        let id = UniqueID(version7At: start, random: &random)
        open[key] = (id, start)
        return (id, start)
    }

    private func wallClock(at instant: MonotonicInstant) -> UnixTime {
        let age = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - instant
        return UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
    }
}
