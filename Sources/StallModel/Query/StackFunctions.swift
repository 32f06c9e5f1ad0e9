// The functions on many stacks as numbers. A store of a million reports has tens of thousands of stacks, each of dozens of
// frames: as frames they would take hundreds of megabytes.

/// The functions on each of some stacks, innermost first, by the numbers that the caller gave them.
package struct StackFunctions: Sendable {
    private var numbers: [Int32] = []
    private var ranges: [Int64: Range<Int>] = [:]

    package init() {}

    /// Empty for an unknown stack.
    package subscript(stack: Int64) -> ArraySlice<Int32> {
        ranges[stack].map { numbers[$0] } ?? []
    }

    package mutating func add(stack: Int64, _ functions: some Sequence<Int32>) {
        let first = numbers.count
        numbers.append(contentsOf: functions)
        ranges[stack] = first..<numbers.count
    }
}
