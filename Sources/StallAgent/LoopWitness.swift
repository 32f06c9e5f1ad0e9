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
    let mode: String
    let incident: StallIncident
    let samples: [RawSample]
    /// The threads of the pool that the work belongs to, when it is a pool's.
    let members: [SeenThread]
    /// The app's other threads, when it asked for all.
    let others: ThreadRound
    let othersCost: Duration
    let trail: CauseEvidenceTrail
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

    let process: ProcessEvidence

    init(_ controlGroup: ControlGroup) throws(CaptureError) {
        process = ProcessEvidence(controlGroup)
        sampler = try StackSampler()
    }

    func captureStack(
        of thread: RegisteredThread, within limit: Duration
    ) throws(CaptureError) -> CapturedStack {
        try sampler.captureStack(of: thread, timeout: limit)
    }

    /// The stack of one of many threads: not worth waiting long for.
    func see(_ thread: RegisteredThread) -> SeenThread {
        let name = threadName(thread.id)
        do throws(CaptureError) {
            let stack = try sampler.captureStack(of: thread, timeout: .milliseconds(10))
            return SeenThread(id: thread.id, name: name, stack: .success(stack))
        } catch {
            return SeenThread(id: thread.id, name: name, stack: .failure(error))
        }
    }

    func captureThreads(except thread: ThreadID?) -> ThreadRound {
        sampler.captureThreads(except: thread.map { [$0] } ?? [])
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
    private let threads: StallMonitor.ThreadScope
    private var account: ThreadAccount
    private var causes: CauseWitness
    /// The threshold that was crossed last: what a stretch of watched time is judged by.
    private var threshold: Duration
    /// The open incidents; a loop may be saturated while a callout of it is stalled.
    private var open: [Incident: OpenStall] = [:]
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, place: any WatchedPlace, beacon: LoopBeacon,
        sampler: SharedSampler?, controlGroup: ControlGroup,
        queue: BoundedQueue<RecorderRequest>, threads: StallMonitor.ThreadScope
    ) {
        self.name = name
        self.threshold = threshold
        self.place = place
        self.beacon = beacon
        self.sampler = sampler
        self.queue = queue
        self.threads = threads
        account = ThreadAccount(place, controlGroup)
        causes = CauseWitness(process: sampler?.process ?? ProcessEvidence(controlGroup))
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
        guard let sampler, let thread = account.thread else {
            causes.observeNobody()
            return .failure(sampler == nil ? NoSampler() : NoThread())
        }
        let stack = Result { () throws in try sampler.captureStack(of: thread, within: limit) }
        causes.observe(thread.id) { other in
            Result { () throws in try sampler.captureStack(of: .found(other), within: limit) }
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
        let open = openStall(incident)
        let id = open.id
        let culprit = samples.last { !$0.isLate } ?? samples.last
        let report = PendingReport(
            id: id, start: open.start, loop: name,
            mode: culprit.flatMap { place.modeName($0.mode) } ?? "", incident: incident,
            samples: samples, members: open.members, others: open.others,
            othersCost: open.othersCost, trail: causes.trail(ofLast: samples.count))
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

    /// What stays the same from an incident's first word to its last.
    private struct OpenStall {
        let id: UniqueID
        let start: UnixTime
        let members: [SeenThread]
        let others: ThreadRound
        let othersCost: Duration
    }

    /// One incident, one id, and one look at the other threads, while it lasts.
    private func openStall(_ incident: StallIncident) -> OpenStall {
        let key = Incident(
            began: incident.began, isSaturation: incident.verdict == .saturated)
        threshold = incident.threshold
        defer { if incident.hasEnded { open[key] = nil } }
        if let known = open[key] { return known }
        let start = wallClock(at: incident.began)
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        var others = ThreadRound()
        var members: [SeenThread] = []
        if !incident.hasEnded, let sampler {
            members = place.members().prefix(64).map { sampler.see($0) }
        }
        if threads == .all, !incident.hasEnded, let sampler {
            others = sampler.captureThreads(except: account.thread?.id)
        }
        let stall = OpenStall(
            id: UniqueID(version7At: start, random: &random), start: start, members: members,
            others: others, othersCost: MonotonicInstant(nanoseconds: stall_monotonic_ns()) - now)
        open[key] = stall
        return stall
    }

    private func wallClock(at instant: MonotonicInstant) -> UnixTime {
        let age = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - instant
        return UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
    }
}
