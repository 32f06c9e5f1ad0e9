// The thread's evidence at the last two polls. A poll reads the beacon, then the thread. If the watchdog loses its CPU
// in between, its evidence is later than its reading and already contains a part of a callout that began meanwhile.

internal import StallModel

/// What is known of a thread from before a span.
struct PriorEvidence: Hashable, Sendable {
    /// The latest evidence. It may be a little later than the beginning of the span.
    var evidence: ThreadEvidence?
    /// How long the loop was busy with other callouts since.
    var busyElsewhere: Duration
    /// How long the thread may have waited for a CPU within the span before the evidence was read.
    var delayedInside = Duration.zero
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
        if let delay = last.evidence.runDelay, let before = older?.evidence.runDelay {
            prior.delayedInside = max(.zero, min(delay - before, last.at - began))
        }
        return prior
    }
}
