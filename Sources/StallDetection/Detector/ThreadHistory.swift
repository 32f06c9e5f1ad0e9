// What was known of a loop's thread at the last two looks. A look reads the beacon, then the thread; a watchdog that
// loses its CPU in between has evidence of a later time than its reading. Of a callout that began meanwhile such
// evidence contains a part already.

internal import StallModel

/// The evidence of the last looks, with their times.
struct ThreadHistory: Sendable {
    private struct Entry {
        var evidence: ThreadEvidence
        var at: MonotonicInstant
        /// How long the loop was busy between the look before and this one.
        var busy: Duration
    }

    private var last: Entry?
    private var older: Entry?

    /// - Parameter evidence: What is known when watching begins.
    init(_ evidence: ThreadEvidence? = nil) {
        last = evidence.map {
            Entry(evidence: $0, at: MonotonicInstant(nanoseconds: 0), busy: .zero)
        }
    }

    mutating func add(_ evidence: ThreadEvidence, at now: MonotonicInstant, busy: Duration) {
        older = last
        last = Entry(evidence: evidence, at: now, busy: busy)
    }

    /// The latest evidence from before a span, as far as there is any.
    ///
    /// - Parameters:
    ///   - busy: How long the loop was busy since the last look, the span not counted.
    ///   - slack: Evidence from this long after the beginning will do: a look that saw the span was not late then.
    /// - Returns: The evidence, and how long the loop was busy with other things since.
    func evidence(
        before began: MonotonicInstant, busy: Duration, slack: Duration
    ) -> (evidence: ThreadEvidence?, busyElsewhere: Duration) {
        if let last, let older, last.at > began + slack {
            return (older.evidence, last.busy + busy)
        }
        return (last?.evidence, busy)
    }
}
