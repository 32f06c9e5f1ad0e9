// Stalls by process run: what a comparison resamples. Stalls of one host come in bursts and share its load, so that a
// thousand of them may be one observation.

package import StallModel

/// The stalls of one group in one process run.
package struct RunTotals: Hashable, Sendable {
    package var run: UniqueID
    package var totals = StallTotals()
    /// Only of loops whose watched time is recorded.
    package var watched = StallTotals()

    package init(run: UniqueID) { self.run = run }

    package mutating func add(_ stalls: StallTotals, isWatched: Bool) {
        totals.add(stalls)
        if isWatched { watched.add(stalls) }
    }
}

/// The process runs of a store, and their loops.
package struct RunLoops: Sendable {
    package var runs: [ProcessRun]
    /// The names of loops.
    package var names: [String]
    /// By their indices.
    package var loops: [(run: Int, name: Int)]

    package init(runs: [ProcessRun], names: [String], loops: [(run: Int, name: Int)]) {
        self.runs = runs
        self.names = names
        self.loops = loops
    }
}

/// A stall as `QueryableStore.runStalls` hands it over: small, since there may be millions.
package struct RunStall: Sendable {
    /// Index into the runs.
    package var run: Int
    /// Index into the loops' names.
    package var loop: Int
    /// The hash of the stored group.
    package var signature: Int64
    package var cause: CauseClass?
    /// Whether its loop's watched time is recorded.
    package var isWatched: Bool
    package var duration: Duration

    package init(
        run: Int, loop: Int, signature: Int64, cause: CauseClass?, isWatched: Bool,
        duration: Duration
    ) {
        self.run = run
        self.loop = loop
        self.signature = signature
        self.cause = cause
        self.isWatched = isWatched
        self.duration = duration
    }
}
