// Gathers evidence of one watched place's thread, beside each sample. Runs on the watchdog's thread.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallModel

/// The counters of the process, kept open once for all loops.
final class ProcessEvidence: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private let gatherer: ProcessGatherer

    init(_ controlGroup: ControlGroup) { gatherer = ProcessGatherer(controlGroup) }

    func look(_ counters: inout Counters) -> UnreadableFacts { gatherer.look(&counters) }
}

/// What was seen of a stall, for the decision on its cause.
struct CauseEvidenceTrail: Sendable {
    /// One for each sample, in their order; nil where nobody was at the work. Fewer when the first ones are gone.
    var observations: [Observation?]
    /// The counters at the last look, and when that was.
    var last: Counters
    var lastLook: MonotonicInstant
}

/// Collects observations, one for each sample that is taken.
struct CauseWitness: ~Copyable {
    private let process: ProcessEvidence
    private var thread: ThreadGatherer?
    private var observations: [Observation?] = []

    init(process: ProcessEvidence) { self.process = process }

    /// Looks at the thread, beside a sample of its stack. `capture` takes the stacks of threads it may wait for.
    mutating func observe(
        _ id: ThreadID, capture: (ThreadID) -> Result<CapturedStack, any Error>
    ) {
        follow(id)
        let start = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        guard var (wait, counters) = thread?.look() else { return keep(nil) }
        wait.unreadable.formUnion(process.look(&counters))
        let cost = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - start
        var observation = Observation(
            at: start, thread: id, wait: wait, counters: counters, cost: cost)
        if wait.futex != nil {
            observation.suspects = suspects(behind: wait, of: id, capture: capture)
        }
        keep(observation)
    }

    /// A sample was due and there was no thread to look at.
    mutating func observeNobody() { keep(nil) }

    private mutating func keep(_ observation: Observation?) {
        if observations.count >= 64 { observations.removeFirst(32) }
        observations.append(observation)
    }

    /// The evidence of the last samples, with a last look at the counters.
    mutating func trail(ofLast count: Int) -> CauseEvidenceTrail {
        var (_, counters) = thread?.look() ?? (Wait(), Counters())
        _ = process.look(&counters)
        return CauseEvidenceTrail(
            observations: Array(observations.suffix(count)), last: counters,
            lastLook: MonotonicInstant(nanoseconds: stall_monotonic_ns()))
    }

    private mutating func follow(_ id: ThreadID) {
        guard thread?.thread != id else { return }
        thread = ThreadGatherer(id)
    }
}
