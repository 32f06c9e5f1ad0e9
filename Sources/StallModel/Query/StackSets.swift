// The input of call trees: stalls with equal stacks, added up. Millions of stalls have few distinct sets of stacks.

/// Stalls grouped by their sets of stacks.
package struct StackSets: Sendable {
    /// Stalls of one program with the same set of stacks.
    package struct Entry: Hashable, Sendable {
        package var executable: BuildID?
        /// The numbers of the distinct stacks in the store; empty for stalls without a stack.
        package var stacks: [Int64]
        /// The number of stalls.
        package var count = 0
        /// The total time that each of the stacks stands for.
        package var times: [Duration]
        /// The total time of stalls without a stack.
        package var timeWithoutStack = Duration.zero
    }

    private struct Key: Hashable {
        var executable: Int
        var stacks: [Int64]
    }

    /// In order of first occurrence.
    package private(set) var entries: [Entry] = []
    private var indexes: [Key: Int] = [:]
    private var executables: [BuildID?: Int] = [:]

    package init() {}

    /// Adds a stall and distributes its duration over its stacks by weight.
    package mutating func add(
        _ stacks: [WeightedStack], lasting duration: Duration, executable: BuildID?
    ) {
        let number = executables[executable] ?? executables.count
        executables[executable] = number
        var numbers: [Int64] = []
        for stack in stacks where !numbers.contains(stack.stack) { numbers.append(stack.stack) }
        let key = Key(executable: number, stacks: numbers)
        let index = indexes[key] ?? entries.count
        if index == entries.count {
            indexes[key] = index
            entries.append(
                Entry(
                    executable: executable, stacks: numbers,
                    times: Array(repeating: .zero, count: numbers.count)))
        }
        entries[index].count += 1
        guard !stacks.isEmpty else { return entries[index].timeWithoutStack += duration }
        // Even the shortest sample has a weight.
        let weight = stacks.reduce(0.0) { $0 + Double(Swift.max($1.weight.nanoseconds, 1)) }
        for stack in stacks {
            let part =
                Double(Swift.max(stack.weight.nanoseconds, 1)) / weight
                * Double(duration.nanoseconds)
            entries[index].times[numbers.firstIndex(of: stack.stack)!] +=
                .nanoseconds(Int64(Swift.min(part.rounded(), 9e18)))
        }
    }
}
