// The input of call trees: stalls with equal stacks, added up. Millions of stalls have few distinct sets of stacks.

package import StallModel

/// Stalls grouped by their sets of stacks.
package struct StackSets: Sendable {
    /// Stalls of one program with the same set of stacks.
    package struct Entry: Sendable {
        /// Index into `executables`.
        package var executable: Int
        /// The distinct stacks, as indices into `stacks` of all; empty for stalls without a stack.
        package var stacks: ArraySlice<Int32>
        /// The number of stalls.
        package var count: Int
        /// The total time that each of the stacks stands for.
        package var times_ns: ArraySlice<Int64>
        /// The total time of stalls without a stack.
        package var timeWithoutStack_ns: Int64
    }

    private var table = StackSetTable()
    /// By set. Sums end at the largest number.
    private var counts: [Int] = []
    private var withoutStack_ns: [Int64] = []
    /// By stack of a set, those of one set behind each other, and where those of each begin.
    private var times_ns: [Int64] = []
    private var firstTimes: [Int] = []

    package init() {}

    /// The number of entries, in order of first occurrence.
    package var count: Int { counts.count }
    package var isEmpty: Bool { counts.isEmpty }

    package subscript(index: Int) -> Entry {
        let (stacks, first) = (table[index], firstTimes[index])
        return Entry(
            executable: table.executableNumber(ofSet: index), stacks: stacks,
            count: counts[index], times_ns: times_ns[first..<first + stacks.count],
            timeWithoutStack_ns: withoutStack_ns[index])
    }

    package var entries: [Entry] { counts.indices.map { self[$0] } }

    /// Every stack once, as the store numbers them, in order of first occurrence.
    package var stacks: [Int64] { table.stacks }

    package var executables: [BuildID?] { table.executables }
    package mutating func number(ofExecutable executable: BuildID?) -> Int32 {
        table.number(ofExecutable: executable)
    }

    /// Adds a stall and distributes its duration over its stacks by weight.
    package mutating func add(
        _ stacks: [WeightedStack], lasting duration: Duration, executable: BuildID?
    ) {
        var own = StallStacks()
        for stack in stacks { own.add(stack.stack, weight: stack.weight.nanoseconds) }
        add(own, lasting_ns: duration.nanoseconds, executable: number(ofExecutable: executable))
    }

    package mutating func add(
        _ stall: StallStacks, lasting_ns duration: Int64, executable: Int32
    ) {
        let set = table.number(of: stall.stacks, executable: executable)
        if set == counts.count {
            counts.append(0)
            withoutStack_ns.append(0)
            firstTimes.append(times_ns.count)
            times_ns += repeatElement(0, count: stall.stacks.count)
        }
        counts[set] += 1
        guard !stall.stacks.isEmpty else { return withoutStack_ns[set].addSaturated(duration) }
        let first = firstTimes[set]
        guard stall.stacks.count > 1 else { return times_ns[first].addSaturated(duration) }
        let whole = stall.weights.reduce(0.0) { $0 + Double($1) }
        for index in stall.stacks.indices {
            let part = Double(stall.weights[index]) / whole * Double(duration)
            times_ns[first + index].addSaturated(Int64(nearest: part))
        }
    }
}
