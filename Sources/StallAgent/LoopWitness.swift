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
    case record(PendingReport)
    case measured(PendingMeasure)
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
    private let place: any WatchedPlace
    private let beacon: LoopBeacon
    private let sampler: SharedSampler?
    private let queue: BoundedQueue<RecorderRequest>
    private var account: ThreadAccount
    /// The threshold that was crossed last: what a stretch of watched time is judged by.
    private var threshold: Duration
    /// The open incidents; a loop may be saturated while a callout of it is stalled.
    private var open: [Incident: (id: UniqueID, start: UnixTime)] = [:]
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, place: any WatchedPlace, beacon: LoopBeacon,
        sampler: SharedSampler?, controlGroup: ControlGroupProbe,
        queue: BoundedQueue<RecorderRequest>
    ) {
        self.name = name
        self.threshold = threshold
        self.place = place
        self.beacon = beacon
        self.sampler = sampler
        self.queue = queue
        account = ThreadAccount(place, controlGroup)
    }

    private struct Incident: Hashable {
        var began: MonotonicInstant
        var isSaturation: Bool
    }

    func correct(_ reading: LoopReading, at now: MonotonicInstant) {
        place.correct(reading.word, at: now)
    }

    func evidence(isSuspect: Bool) -> ThreadEvidence {
        account.evidence(isSuspect: isSuspect, isAsked: beacon.isBusy)
    }

    func captureStack(within limit: Duration) -> Result<CapturedStack, any Error> {
        guard let sampler else { return .failure(NoSampler()) }
        guard let thread = account.thread else { return .failure(NoThread()) }
        return Result { () throws in try sampler.captureStack(of: thread, within: limit) }
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
            id: id, start: start, loop: name,
            mode: culprit.flatMap { place.modeName($0.mode) } ?? "", incident: incident, samples: samples)
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
