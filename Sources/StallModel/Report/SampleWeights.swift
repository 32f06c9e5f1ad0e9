// How much of a stall each look at it stands for. The agent says it in reports; the store leaves it
// out where it follows, and so must come to the same numbers.

/// The time that each of a stall's samples stands for: half the way to its neighbours, from the
/// beginning to the end.
///
/// A sample that says nothing stands for nothing, and its share goes to its neighbours.
///
/// - Parameters:
///   - offsets: When each sample was taken, in nanoseconds from the start of the stall; nil for one
///     that is late or has no stack.
///   - duration: Of the stall, in nanoseconds.
/// - Returns: For each sample its nanoseconds.
package func sampleWeights(_ offsets: [Int64?], of duration: Int64) -> [Int64] {
    var weights = [Int64](repeating: 0, count: offsets.count)
    var (from, last): (Int64, (index: Int, offset: Int64)?) = (0, nil)
    for (index, offset) in offsets.enumerated() {
        guard let offset = offset.map({ max(0, $0) }) else { continue }
        if let last {
            // The sum may have 64 bits.
            let until = Int64((UInt64(last.offset) + UInt64(offset)) / 2)
            weights[last.index] = max(0, until - from)
            from = max(from, until)
        }
        last = (index, offset)
    }
    if let last { weights[last.index] = max(0, max(0, duration) - from) }
    return weights
}
