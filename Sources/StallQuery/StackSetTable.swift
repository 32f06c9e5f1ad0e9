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
    /// By stack, the set of it alone in the program that had it first, and that program: most stalls have one stack, and
    /// most stacks are of one program.
    private var singles: [(set: Int32, program: Int32)] = []

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

    package func stackCount(ofSet set: Int) -> Int { lists.range(of: Int32(set)).count - 1 }

    /// Index into `executables`.
    package func executableNumber(ofSet set: Int) -> Int {
        Int(lists.numbers[lists.range(of: Int32(set)).lowerBound])
    }

    /// The number of a set, which is added when it is new.
    ///
    /// - Parameter distinct: Its stacks as the store numbers them, each once.
    package mutating func number(of distinct: [Int64], executable: Int32) -> Int {
        guard distinct.count == 1 else { return added(distinct, executable) }
        let stack = Int(numbers.add(distinct[0]))
        if stack < singles.count, singles[stack].program == executable {
            return Int(singles[stack].set)
        }
        let set = added(distinct, executable)
        let missing = stack + 1 - singles.count
        if missing > 0 { singles += repeatElement((set: 0, program: -1), count: missing) }
        if singles[stack].program < 0 { singles[stack] = (Int32(set), executable) }
        return set
    }

    private mutating func added(_ distinct: [Int64], _ executable: Int32) -> Int {
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
        // One by one: most have one or two.
        while !stacks.isEmpty { stacks.removeLast() }
        while !weights.isEmpty { weights.removeLast() }
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
