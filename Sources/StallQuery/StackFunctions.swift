// The functions on many stacks as numbers. A store of a million reports has tens of thousands of stacks, each of dozens of
// frames: as frames they would take hundreds of megabytes.

/// The functions on each of some stacks, innermost first, by the numbers that the caller gave them. Stacks are numbered
/// from 0 in the order in which they were asked for; those that differ in lines and offsets only have one path.
package struct StackFunctions: Sendable {
    private var lists = NumberLists()
    /// By stack.
    private var paths: [Int32]

    /// Stacks are unknown, without functions, until they are set.
    package init(stackCount: Int) {
        paths = Array(repeating: lists.add([]), count: stackCount)
    }

    /// The number of different paths.
    package var pathCount: Int { lists.count }

    /// The number of the stack's path.
    package func path(ofStack stack: Int32) -> Int32 { paths[Int(stack)] }

    package subscript(stack: Int32) -> ArraySlice<Int32> { lists[paths[Int(stack)]] }

    package mutating func set(_ functions: [Int32], ofStack stack: Int32) {
        paths[Int(stack)] = lists.add(functions)
    }
}
