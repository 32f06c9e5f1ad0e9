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
    /// The threads of the pool that the work belongs to, when it is a pool's.
    let members: [SeenThread]
    /// The app's other threads, when it asked for all.
    let others: ThreadRound
    let othersCost: Duration
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
    private let threshold: Duration
    private let place: any WatchedPlace
    private let beacon: LoopBeacon
    private let sampler: SharedSampler?
    private let queue: BoundedQueue<RecorderRequest>
    private let threads: StallMonitor.ThreadScope
    private var account: ThreadAccount
    private var causes: CauseWitness
    private var open: OpenStall?
    private var random = SystemRandomNumberGenerator()

    init(
        name: String, threshold: Duration, place: any WatchedPlace, beacon: LoopBeacon,
        sampler: SharedSampler?, queue: BoundedQueue<RecorderRequest>,
        threads: StallMonitor.ThreadScope
    ) {
        self.name = name
        self.threshold = threshold
        self.place = place
        self.beacon = beacon
        self.sampler = sampler
        self.queue = queue
        self.threads = threads
        account = ThreadAccount(place)
        causes = CauseWitness(process: sampler?.process ?? ProcessEvidence())
    }

    func correct(_ reading: LoopReading, at now: MonotonicInstant) {
        place.correct(reading.word, at: now)
    }

    func evidence() -> ThreadEvidence { account.evidence(isAsked: beacon.isBusy) }

    func captureStack() -> Result<CapturedStack, any Error> {
        guard let sampler, let thread = account.thread else {
            causes.observeNobody()
            return .failure(sampler == nil ? NoSampler() : NoThread())
        }
        let stack = Result { () throws in try sampler.captureStack(of: thread) }
        causes.observe(thread.id) { other in
            Result { () throws in try sampler.captureStack(of: .found(other)) }
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
            id: id, start: open.start, loop: name, threshold: threshold,
            mode: culprit.flatMap { place.modeName($0.mode) } ?? "", incident: incident,
            samples: samples, members: open.members, others: open.others,
            othersCost: open.othersCost,
            trail: causes.trail(ofLast: samples.count))
        queue.push(.record(report)) {
            if case .record(let earlier) = $0 { earlier.id == id } else { false }
        }
        if incident.hasEnded { self.open = nil }
    }

    /// What stays the same from an incident's first word to its last.
    private struct OpenStall {
        let began: MonotonicInstant
        let id: UniqueID
        let start: UnixTime
        let members: [SeenThread]
        let others: ThreadRound
        let othersCost: Duration
    }

    /// One incident, one id, and one look at the other threads, while it lasts.
    private func openStall(_ incident: StallIncident) -> OpenStall {
        if let open, open.began == incident.began { return open }
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let age = now - incident.began
        let start = UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
        var others = ThreadRound()
        var members: [SeenThread] = []
        if !incident.hasEnded, let sampler {
            members = place.members().prefix(64).map { sampler.see($0) }
        }
        if threads == .all, !incident.hasEnded, let sampler {
            others = sampler.captureThreads(except: account.thread?.id)
        }
        let stall = OpenStall(
            began: incident.began, id: UniqueID(version7At: start, random: &random), start: start,
            members: members, others: others,
            othersCost: MonotonicInstant(nanoseconds: stall_monotonic_ns()) - now)
        open = stall
        return stall
    }
}
