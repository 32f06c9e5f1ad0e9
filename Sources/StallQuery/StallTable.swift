// Stalls with their stacks as numbers, compact enough to hold millions: 32 bytes for each, and what they share once.

package import StallModel

/// The stalls that a filter selects, and what an overview says of all its reports.
package struct StallTable: Sendable {
    package struct Stall: Sendable {
        package var start_us: Int64
        package var duration_ns: Int64
        package var source: Int32
        /// Its number in the source; zero, which no report has, for one that is too large.
        package var seq: UInt32
        /// Index into `facts`.
        package var facts: Int32
        /// The number of its set in `sets`.
        package var set: Int32

        package init(
            start_us: Int64, duration_ns: Int64, source: Int64, seq: Int64, facts: Int32,
            set: Int32
        ) {
            self.start_us = start_us
            self.duration_ns = duration_ns
            self.source = Int32(truncatingIfNeeded: source)
            self.seq = UInt32(exactly: seq) ?? 0
            self.facts = facts
            self.set = set
        }
    }

    /// The facts that many stalls share.
    package struct Facts: Hashable, Sendable {
        /// Index into `runs`.
        package var run: Int
        package var loop: String
        package var cause: CauseClass?
        /// Whether its loop's watched time is recorded.
        package var isWatched: Bool

        package init(run: Int, loop: String, cause: CauseClass?, isWatched: Bool) {
            self.run = run
            self.loop = loop
            self.cause = cause
            self.isWatched = isWatched
        }
    }

    package var runs: [ProcessRun] = []
    package var facts: [Facts] = []
    package var stalls: [Stall] = []
    /// The part of a stall that was not its thread's own, by the stall's index; few have one.
    package var delayed_ns: [Int: Int64] = [:]
    package var sets = StackSetTable()
    /// Of the stacks of stalls that have several, in the order of the stalls.
    package var weights: [Int64] = []
    /// The number of reports by verdict, stalls included.
    package var counts: [StallVerdict: Int] = [:]
    package var openCount = 0
    package var hangCount = 0

    package init() {}

    /// Calls `body` with each stall, the part of it that was not its thread's own, and the weights of its stacks, where
    /// it has several.
    package func forEachStall(
        _ body: (_ stall: Stall, _ delayed_ns: Int64, _ weights: ArraySlice<Int64>) -> Void
    ) {
        var next = 0
        for (index, stall) in stalls.enumerated() {
            let count = sets[Int(stall.set)].count
            let end = count < 2 ? next : next + count
            let delayed = delayed_ns.isEmpty ? 0 : delayed_ns[index] ?? 0
            body(stall, delayed, weights[next..<end])
            next = end
        }
    }
}
