// Numbers the sets of stacks that stalls show. Flat: millions of stalls have up to as many sets, and an array for each
// would take more memory than what it holds.

/// Distinct sets of stacks of one program, in order of first occurrence.
package struct StackSetTable: Sendable {
    private struct Row {
        /// Where its stacks begin.
        var first: Int
        var executable: Int32
    }

    private var rows: [Row] = []
    /// The stacks of all sets, one set behind the other.
    package private(set) var stacks: [Int64] = []
    /// The programs, nil for those without a build ID.
    package private(set) var executables: [BuildID?] = []
    private var numbers: [BuildID?: Int32] = [:]
    /// Open addressing: the number of a row plus one, 0 for an empty slot.
    private var slots: [Int32] = Array(repeating: 0, count: 1024)

    package init() {}

    package var count: Int { rows.count }

    /// The number of a program.
    package mutating func number(ofExecutable executable: BuildID?) -> Int32 {
        if let known = numbers[executable] { return known }
        let number = Int32(executables.count)
        numbers[executable] = number
        executables.append(executable)
        return number
    }

    /// Where the stacks of a set lie in `stacks`.
    package func range(ofSet set: Int) -> Range<Int> {
        rows[set].first..<(set + 1 < rows.count ? rows[set + 1].first : stacks.count)
    }

    /// Index into `executables`.
    package func executableNumber(ofSet set: Int) -> Int { Int(rows[set].executable) }

    /// The number of a set, which is added when it is new.
    ///
    /// - Parameter distinct: Its stacks, each once.
    package mutating func number(of distinct: [Int64], executable: Int32) -> Int {
        var hash = UInt64(truncatingIfNeeded: executable) &* 0x9e37_79b9_7f4a_7c15
        for stack in distinct {
            hash ^= UInt64(bitPattern: stack)
            hash &*= 0xff51_afd7_ed55_8ccd
            hash ^= hash >> 32
        }
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 {
            let set = Int(slots[slot]) - 1
            if rows[set].executable == executable, has(set, distinct) { return set }
            slot = (slot + 1) & (slots.count - 1)
        }
        rows.append(Row(first: stacks.count, executable: executable))
        stacks += distinct
        slots[slot] = Int32(rows.count)
        if rows.count * 2 > slots.count { grow() }
        return rows.count - 1
    }

    private func has(_ set: Int, _ distinct: [Int64]) -> Bool {
        let range = range(ofSet: set)
        guard range.count == distinct.count else { return false }
        for index in distinct.indices where stacks[range.lowerBound + index] != distinct[index] {
            return false
        }
        return true
    }

    private mutating func grow() {
        let old = slots
        slots = Array(repeating: 0, count: old.count * 2)
        for number in old where number != 0 {
            let set = Int(number) - 1
            var hash = UInt64(truncatingIfNeeded: rows[set].executable) &* 0x9e37_79b9_7f4a_7c15
            for stack in stacks[range(ofSet: set)] {
                hash ^= UInt64(bitPattern: stack)
                hash &*= 0xff51_afd7_ed55_8ccd
                hash ^= hash >> 32
            }
            var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = number
        }
    }
}

/// The stacks of one stall's samples that are not late, and the time that each stands for.
package struct StallStacks: Sendable {
    /// Each stack once, in order of first occurrence.
    package private(set) var stacks: [Int64] = []
    /// By stack.
    package private(set) var weights: [Int64] = []

    package init() {}

    package mutating func removeAll() {
        stacks.removeAll(keepingCapacity: true)
        weights.removeAll(keepingCapacity: true)
    }

    /// Adds a sample. Even the shortest sample has a weight.
    package mutating func add(_ stack: Int64, weight: Int64) {
        let weight = max(weight, 1)
        if let index = stacks.firstIndex(of: stack) {
            let (sum, overflow) = weights[index].addingReportingOverflow(weight)
            weights[index] = overflow ? .max : sum
        } else {
            stacks.append(stack)
            weights.append(weight)
        }
    }
}
