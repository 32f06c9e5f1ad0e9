// Selects reports; and the compact report that ranking reads.

package import StallModel

/// The reports that a query covers. Empty lists and nils do not restrict.
package struct ReportFilter: Hashable, Sendable {
    package var apps: [String] = []
    package var versions: [String] = []
    package var hosts: [String] = []
    package var loops: [String] = []
    /// Reports that started at or after this time.
    package var since: UnixTime?
    /// Reports that started before this time.
    package var until: UnixTime?
    /// Also those that are ranked; with nil only stalls are.
    package var verdicts: Set<StallVerdict>?
    package var causes: Set<CauseClass>?
    /// Roll-ups do not have the states: such a question is answered from reports.
    package var states: Set<StallState>?

    package init() {}

    /// The verdicts of the reports that a ranking ranks; all others that are selected are counted.
    package var rankedVerdicts: Set<StallVerdict> { verdicts ?? [.stalled] }

    /// Whether reports of this cause are selected.
    package func allows(cause: CauseClass?) -> Bool {
        guard let causes else { return true }
        return cause.map(causes.contains) ?? false
    }
}

/// A stack by its number in the store, and the time that it stands for.
package struct WeightedStack: Hashable, Sendable {
    package var stack: Int64
    package var weight: Duration

    package init(stack: Int64, weight: Duration) {
        self.stack = stack
        self.weight = weight
    }
}

/// One report without frames: compact enough to rank millions.
package struct ReportSummary: Hashable, Sendable {
    package var id: UniqueID
    /// Index into the process runs of the same answer.
    package var run: Int
    package var loop: String
    package var start: UnixTime
    package var duration: Duration
    /// The part of the duration that was not the thread's own; zero where none is known.
    package var delayed = Duration.zero
    package var outcome: StallOutcome
    package var verdict: StallVerdict
    /// Why it stalled, if the store knows.
    package var cause: CauseClass?
    /// Whether its loop's watched time is recorded.
    package var isWatched = false
    /// The stacks of samples that are not late, in chronological order.
    package var stacks: [WeightedStack]

    package init(
        id: UniqueID, run: Int, loop: String, start: UnixTime, duration: Duration,
        outcome: StallOutcome, verdict: StallVerdict, cause: CauseClass? = nil,
        stacks: [WeightedStack]
    ) {
        self.id = id
        self.run = run
        self.loop = loop
        self.start = start
        self.duration = duration
        self.outcome = outcome
        self.verdict = verdict
        self.cause = cause
        self.stacks = stacks
    }

    package var state: StallState { outcome.state }
}
