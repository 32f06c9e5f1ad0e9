// Answers the watchdog's questions about one loop's thread, and passes what it is told on to the recorder.
// Everything here runs on the watchdog's thread, while the loop's thread may hold any lock of the app.

internal import CLinux
internal import StallCapture
internal import StallCause
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
    let trail: CauseEvidenceTrail
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

    let process = ProcessEvidence()

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
    private let place: any WatchedPlace
    private let beacon: LoopBeacon
    private let sampler: SharedSampler?
    private let queue: BoundedQueue<RecorderRequest>
    private var account: ThreadAccount
    private var causes: CauseWitness
    private var open: (began: MonotonicInstant, id: UniqueID, start: UnixTime)?
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, place: any WatchedPlace, beacon: LoopBeacon,
        sampler: SharedSampler?, queue: BoundedQueue<RecorderRequest>
    ) {
        self.name = name
        self.threshold = threshold
        self.place = place
        self.beacon = beacon
        self.sampler = sampler
        self.queue = queue
        account = ThreadAccount(place)
        causes = CauseWitness(process: sampler?.process ?? ProcessEvidence())
    }

    func correct(_ reading: LoopReading, at now: MonotonicInstant) {
        place.correct(reading.word, at: now)
    }

    func evidence() -> ThreadEvidence { account.evidence(isAsked: beacon.isBusy) }

    func captureStack() -> Result<CapturedStack, any Error> {
        guard let sampler else { return .failure(NoSampler()) }
        guard let thread = account.thread else { return .failure(NoThread()) }
        let stack = Result { () throws in try sampler.captureStack(of: thread) }
        causes.observe(thread.id) { other in
            Result { () throws in try sampler.captureStack(of: .other(other)) }
        }
        return stack
    }

    private struct NoSampler: Error, CustomStringConvertible {
        let description = "no memory for the sampler when the agent started"
    }

    private struct NoThread: Error, CustomStringConvertible {
        let description = "no thread was running its work"
    }

    func stallChanged(_ incident: StallIncident, samples: [RawSample]) {
        let (id, start) = identity(of: incident)
        let culprit = samples.last { !$0.isLate } ?? samples.last
        let report = PendingReport(
            id: id, start: start, loop: name, threshold: threshold,
            mode: culprit.flatMap { place.modeName($0.mode) } ?? "", incident: incident,
            samples: samples, trail: causes.trail(ofLast: samples.count))
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
