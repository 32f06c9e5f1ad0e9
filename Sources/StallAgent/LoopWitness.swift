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
    let threshold: Duration
    let mode: String
    let incident: StallIncident
    let samples: [RawSample]
}

/// What the recorder is asked to do.
enum RecorderRequest: Sendable {
    case openStore
    case record(PendingReport)
}

/// The one sampler of the process, used by the watchdog's thread alone.
final class SharedSampler: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private var sampler: StackSampler

    init() throws(CaptureError) { sampler = try StackSampler() }

    func captureStack(of thread: RegisteredThread) throws(CaptureError) -> CapturedStack {
        try sampler.captureStack(of: thread, timeout: .milliseconds(100))
    }
}

/// One watched loop, as the watchdog sees it.
final class LoopWitness: StallResponder, @unchecked Sendable {
    // Unchecked because only the watchdog's thread calls it after `init`.
    private let name: String
    private let threshold: Duration
    private let thread: RegisteredThread
    private let sampler: SharedSampler?
    private let modeName: @Sendable (UInt32) -> String?
    private let queue: BoundedQueue<RecorderRequest>
    private var probe: ThreadProbe
    private var open: (began: MonotonicInstant, id: UniqueID, start: UnixTime)?
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, thread: RegisteredThread, sampler: SharedSampler?,
        modeName: @escaping @Sendable (UInt32) -> String?, queue: BoundedQueue<RecorderRequest>
    ) {
        self.name = name
        self.threshold = threshold
        self.thread = thread
        self.sampler = sampler
        self.modeName = modeName
        self.queue = queue
        probe = ThreadProbe(thread.id)
    }

    func evidence() -> ThreadEvidence {
        let (before, state, now) = (probe.cpuTime(), probe.state(), probe.cpuTime())
        // The CPU clock of a thread that runs now moves between two readings.
        return ThreadEvidence(
            cpuTime: now, runDelay: probe.runDelay(), state: state,
            waitsForCPU: state == UInt8(ascii: "R") && before == now)
    }

    func captureStack() -> Result<CapturedStack, any Error> {
        guard let sampler else { return .failure(NoSampler()) }
        return Result { () throws in try sampler.captureStack(of: thread) }
    }

    private struct NoSampler: Error, CustomStringConvertible {
        let description = "no memory for the sampler when the agent started"
    }

    func stallChanged(_ incident: StallIncident, samples: [RawSample]) {
        let (id, start) = identity(of: incident)
        let culprit = samples.last { !$0.isLate } ?? samples.last
        let report = PendingReport(
            id: id, start: start, loop: name, threshold: threshold,
            mode: culprit.flatMap { modeName($0.mode) } ?? "", incident: incident, samples: samples)
        queue.push(.record(report)) {
            if case .record(let earlier) = $0 { earlier.id == id } else { false }
        }
        if incident.hasEnded { open = nil }
    }

    /// One incident, one id, from its first word to its last.
    private func identity(of incident: StallIncident) -> (UniqueID, UnixTime) {
        if let open, open.began == incident.began { return (open.id, open.start) }
        let age = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - incident.began
        let start = UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
        let id = UniqueID(version7At: start, random: &random)
        open = (incident.began, id, start)
        return (id, start)
    }
}
