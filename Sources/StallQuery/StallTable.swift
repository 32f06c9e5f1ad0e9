// Stalls with their stacks as numbers, compact enough to hold millions: 32 bytes for each, four for each of several
// stacks, and what they share once.

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

    /// At least one of each app, version and host that a stall is of.
    package var runs: [ProcessRun] = []
    package var facts: [Facts] = []
    package var stalls: [Stall] = []
    /// The part of a stall that was not its thread's own, by the stall's index; few have one.
    package var delayed_ns: [Int: Int64] = [:]
    package var sets = StackSetTable()
    /// Of the stacks of stalls that have several, in the order of the stalls.
    package var weights = StackWeights()
    /// The number of reports by verdict, stalls included.
    package var counts: [StallVerdict: Int] = [:]
    package var openCount = 0
    package var hangCount = 0

    package init() {}

    /// Calls `body` with each stall, the part of it that was not its thread's own, and the weights of its stacks, where
    /// it has several.
    package func forEachStall(
        _ body: (_ stall: Stall, _ delayed_ns: Int64, _ weights: [Int64]) -> Void
    ) {
        var rest = weights.makeIterator()
        var own: [Int64] = []
        for (index, stall) in stalls.enumerated() {
            while !own.isEmpty { own.removeLast() }
            let count = sets.stackCount(ofSet: Int(stall.set))
            while count > 1, own.count < count, let weight = rest.next() { own.append(weight) }
            let delayed = delayed_ns.isEmpty ? 0 : delayed_ns[index] ?? 0
            body(stall, delayed, own)
        }
    }
}

/// Weights in nanoseconds, each in four bytes; those of more than four seconds, which are few, in twelve.
package struct StackWeights: Sequence, Sendable {
    private var words: [UInt32] = []

    package init() {}

    package mutating func append(contentsOf weights: [Int64]) {
        for weight in weights {
            if let word = UInt32(exactly: weight), word < .max {
                words.append(word)
            } else {
                words.append(.max)
                words.append(UInt32(truncatingIfNeeded: weight >> 32))
                words.append(UInt32(truncatingIfNeeded: weight))
            }
        }
    }

    package struct Iterator: IteratorProtocol {
        fileprivate let words: [UInt32]
        private var index = 0

        fileprivate init(_ words: [UInt32]) { self.words = words }

        package mutating func next() -> Int64? {
            guard index < words.count else { return nil }
            let word = words[index]
            index += 1
            guard word == .max, index + 1 < words.count else { return Int64(word) }
            let (high, low) = (words[index], words[index + 1])
            index += 2
            return Int64(Int32(bitPattern: high)) << 32 | Int64(low)
        }
    }

    package func makeIterator() -> Iterator { Iterator(words) }
}
