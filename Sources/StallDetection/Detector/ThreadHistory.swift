// The thread's evidence at the last two polls. A poll reads the beacon, then the thread. If the watchdog loses its CPU
// in between, its evidence is later than its reading and already contains a part of a callout that began meanwhile.

internal import StallModel

/// The evidence about a thread from before a span.
struct PriorEvidence: Equatable, Sendable {
    /// The latest evidence. It may be a little later than the beginning of the span.
    var evidence: ThreadEvidence?
    /// How long the loop was busy with other callouts since.
    var busyElsewhere: Duration
    /// The part of the span before the evidence was read; nil if there is none.
    var unobserved: UnobservedStart?
}

/// The part of a span before its first evidence was read. The evidence before that is from other callouts, and the
/// kernel does not say on which side of the span's beginning the thread waited for a CPU.
struct UnobservedStart: Equatable, Sendable {
    var length: Duration
    /// The most CPU time that the thread can have used in it.
    var cpuTime: Duration
    /// The least and the most time that the thread can have waited for a CPU in it.
    var leastDelay, mostDelay: Duration

    /// How long the thread has probably waited for a CPU in it: the callout is taken to have begun as it continued.
    ///
    /// - Parameters:
    ///   - delayed: How long the thread waited for a CPU afterwards.
    ///   - blocked: How long it neither waited for a CPU nor used one afterwards.
    ///   - elapsed: How long the span has lasted afterwards.
    func probableDelay(delayed: Duration, blocked: Duration, elapsed: Duration) -> Duration {
        let offCPU = delayed + blocked
        var estimate = max(.zero, length - cpuTime)
        if elapsed > .zero { estimate = max(estimate, length * (offCPU / elapsed)) }
        // A thread that has not been blocked so far was not blocked at its beginning either.
        if offCPU > .zero { estimate = estimate * (delayed / offCPU) }
        return max(leastDelay, min(estimate, mostDelay))
    }

    /// For a conservative judgement.
    mutating func countAllDelay() { leastDelay = mostDelay }
}

/// The evidence of the last polls, with their times.
struct ThreadHistory: Sendable {
    private struct Entry {
        var evidence: ThreadEvidence
        var at: MonotonicInstant
        /// How long the loop was busy between the previous poll and this one.
        var busy: Duration
    }

    private var last: Entry?
    private var older: Entry?

    /// - Parameter evidence: The evidence when watching begins.
    init(_ evidence: ThreadEvidence? = nil) {
        last = evidence.map {
            Entry(evidence: $0, at: MonotonicInstant(nanoseconds: 0), busy: .zero)
        }
    }

    mutating func add(_ evidence: ThreadEvidence, at now: MonotonicInstant, busy: Duration) {
        older = last
        last = Entry(evidence: evidence, at: now, busy: busy)
    }

    /// The latest evidence from before a span, if there is any.
    ///
    /// - Parameters:
    ///   - busy: How long the loop was busy since the last poll, without the span.
    ///   - slack: Evidence from up to this long after the beginning is accepted: the poll of a span was not late then.
    func evidence(
        before began: MonotonicInstant, busy: Duration, slack: Duration
    ) -> PriorEvidence {
        guard let last else { return PriorEvidence(busyElsewhere: busy) }
        if let older, last.at > began + slack {
            return PriorEvidence(evidence: older.evidence, busyElsewhere: last.busy + busy)
        }
        var prior = PriorEvidence(evidence: last.evidence, busyElsewhere: busy)
        if let older, last.at > began {
            prior.unobserved = unobservedStart(of: began, from: older, to: last)
        }
        return prior
    }

    private func unobservedStart(
        of began: MonotonicInstant, from older: Entry, to last: Entry
    ) -> UnobservedStart? {
        guard let delay = last.evidence.runDelay, let delayBefore = older.evidence.runDelay
        else { return nil }
        let length = last.at - began
        let delayed = max(.zero, delay - delayBefore)
        var cpuTime = length
        if let used = last.evidence.cpuTime, let before = older.evidence.cpuTime {
            cpuTime = min(length, max(.zero, used - before))
        }
        let most = min(delayed, length)
        return UnobservedStart(
            length: length, cpuTime: cpuTime,
            leastDelay: min(most, max(.zero, delayed - (began - older.at))), mostDelay: most)
    }
}
