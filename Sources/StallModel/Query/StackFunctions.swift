// The functions on many stacks as numbers. A store of a million reports has tens of thousands of stacks, each of dozens of
// frames: as frames they would take hundreds of megabytes.

/// The functions on each of some stacks, innermost first, by the numbers that the caller gave them. Stacks that differ in
/// lines and offsets only have one path.
package struct StackFunctions: Sendable {
    /// The functions on all paths, one path behind the other, and where those of each end.
    private var numbers: [Int32] = []
    private var ends: [Int] = []
    private var paths: [Int64: Int32] = [:]
    /// The path that was last added with a hash.
    private var pathsByHash: [UInt64: Int32] = [:]

    package init() {}

    /// The number of the stack's path; nil for an unknown stack.
    package func path(ofStack stack: Int64) -> Int32? { paths[stack] }

    /// Empty for an unknown stack.
    package subscript(stack: Int64) -> ArraySlice<Int32> {
        paths[stack].map { numbers[range(ofPath: $0)] } ?? []
    }

    package mutating func add(stack: Int64, _ functions: [Int32]) {
        var hash: UInt64 = 0
        for function in functions {
            hash = (hash ^ UInt64(UInt32(bitPattern: function))) &* 0xff51_afd7_ed55_8ccd
            hash ^= hash >> 32
        }
        if let path = pathsByHash[hash], numbers[range(ofPath: path)].elementsEqual(functions) {
            paths[stack] = path
            return
        }
        let path = Int32(ends.count)
        numbers += functions
        ends.append(numbers.count)
        paths[stack] = path
        pathsByHash[hash] = path
    }

    private func range(ofPath path: Int32) -> Range<Int> {
        (path == 0 ? 0 : ends[Int(path) - 1])..<ends[Int(path)]
    }
}
