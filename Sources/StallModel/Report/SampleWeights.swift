// How much of a stall each of its samples stands for. The agent writes weights into reports; the store omits those that
// follow from the offsets, so both must compute the same numbers.

/// The time that each of a stall's samples stands for: up to half-way to its neighbours, the first from the beginning
/// and the last to the end of the stall.
///
/// A sample that is late or has no stack has no weight; its share goes to its neighbours.
///
/// - Parameters:
///   - offsets: When each sample was taken, in nanoseconds since the start of the stall; nil for one that is late or
///     has no stack.
///   - duration: The stall's duration in nanoseconds.
/// - Returns: The weight of each sample in nanoseconds.
package func sampleWeights(_ offsets: [Int64?], of duration: Int64) -> [Int64] {
    var weights = [Int64](repeating: 0, count: offsets.count)
    var (from, last): (Int64, (index: Int, offset: Int64)?) = (0, nil)
    for (index, offset) in offsets.enumerated() {
        guard let offset = offset.map({ max(0, $0) }) else { continue }
        if let last {
            // As unsigned, because the sum may need 64 bits.
            let until = Int64((UInt64(last.offset) + UInt64(offset)) / 2)
            weights[last.index] = max(0, until - from)
            from = max(from, until)
        }
        last = (index, offset)
    }
    if let last { weights[last.index] = max(0, max(0, duration) - from) }
    return weights
}
