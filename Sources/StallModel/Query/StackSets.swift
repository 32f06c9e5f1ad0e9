// What trees of calls are made of: stalls with the same stacks, added up. Millions of stalls share few of them.

/// Stalls by the stacks that were seen in them.
package struct StackSets: Sendable {
    /// Stalls that all showed the same stacks of one program.
    package struct Entry: Hashable, Sendable {
        package var executable: BuildID?
        /// The stacks by their numbers in the store, each once; none of stalls of which there is no stack.
        package var stacks: [Int64]
        /// How many stalls.
        package var count = 0
        /// The part of all their time that each of the stacks stands for.
        package var times: [Duration]
        /// The time of stalls of which there is no stack.
        package var timeWithoutStack = Duration.zero
    }

    private struct Key: Hashable {
        var executable: Int
        var stacks: [Int64]
    }

    /// In the order in which they were first seen.
    package private(set) var entries: [Entry] = []
    private var indexes: [Key: Int] = [:]
    private var executables: [BuildID?: Int] = [:]

    package init() {}

    /// Adds a stall, whose duration is spread over its stacks by their weights.
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
        // The shortest of samples stands for something.
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
