// A histogram of durations as the bytes of a roll-up's row.

import StallModel
import StallQuery
import StallStore

extension DurationHistogram {
    /// For each bucket in use, in order: how many after the one before it (the first: after -1), and
    /// its count.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        var last = -1
        for (bucket, count) in entries {
            bytes.append(leb128: UInt64(bucket - last))
            bytes.append(leb128: UInt64(Swift.max(0, count)))
            last = bucket
        }
        return bytes
    }

    /// Adds an encoded histogram; false, with a part of it added, when the bytes are no such list.
    package mutating func add(encoded bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        var bucket = -1
        while !rest.isEmpty {
            guard let step = rest.popLEB128(), let count = rest.popDuration(), step > 0, count > 0,
                step <= UInt64(Self.lastBucket - bucket)
            else { return false }
            bucket += Int(step)
            add(bucket: bucket, count: count)
        }
        return true
    }
}
