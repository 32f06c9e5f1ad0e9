// Numbers the sets of stacks that stalls show.

package import StallModel

/// Distinct sets of stacks of one program, in order of first occurrence.
package struct StackSetTable: Sendable {
    /// The program of each set, and behind it the numbers of its stacks.
    private var lists = NumberLists()
    private var numbers = KeyNumbers()
    /// The programs, nil for those without a build ID.
    package private(set) var executables: [BuildID?] = []
    private var executableNumbers: [BuildID?: Int32] = [:]
    /// The set that is looked up, in the same memory each time.
    private var list: [Int32] = []

    package init() {}

    package var count: Int { lists.count }

    /// The stacks of all sets as the store numbers them, each once. Sets have indices into this.
    package var stacks: [Int64] { numbers.keys }

    /// The number of a program.
    package mutating func number(ofExecutable executable: BuildID?) -> Int32 {
        if let known = executableNumbers[executable] { return known }
        let number = Int32(executables.count)
        executableNumbers[executable] = number
        executables.append(executable)
        return number
    }

    /// The stacks of a set, as indices into `stacks`.
    package subscript(set: Int) -> ArraySlice<Int32> { lists[Int32(set)].dropFirst() }

    /// Index into `executables`.
    package func executableNumber(ofSet set: Int) -> Int { Int(lists[Int32(set)].first!) }

    /// The number of a set, which is added when it is new.
    ///
    /// - Parameter distinct: Its stacks as the store numbers them, each once.
    package mutating func number(of distinct: [Int64], executable: Int32) -> Int {
        list.removeAll(keepingCapacity: true)
        list.append(executable)
        for stack in distinct { list.append(numbers.add(stack)) }
        return Int(lists.add(list))
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
            weights[index].addSaturated(weight)
        } else {
            stacks.append(stack)
            weights.append(weight)
        }
    }
}
