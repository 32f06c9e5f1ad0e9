// A compact histogram of durations: the median of millions of stalls without reading each. The buckets are part of the
// store's format; never change them.

import StallModel

/// Counts of durations in log-linear buckets: whole microseconds up to 64, then 64 buckets per power of two, so that a
/// bucket is at most 1.6 % wide.
package struct DurationHistogram: Hashable, Sendable {
    /// Counts from bucket `first` up to the last one in use.
    private var counts: [Int64] = []
    private var first = 0
    package private(set) var total: Int64 = 0

    private static let logOfParts = 6

    package init() {}

    /// The bucket of a duration; negative durations are in bucket 0.
    package static func bucket(of duration: Duration) -> Int {
        bucket(ofNanoseconds: duration.nanoseconds)
    }

    package static func bucket(ofNanoseconds duration_ns: Int64) -> Int {
        let microseconds = UInt64(max(0, duration_ns)) / 1000
        guard microseconds >= 1 << logOfParts else { return Int(microseconds) }
        let shift = 63 - microseconds.leadingZeroBitCount - logOfParts
        return shift << logOfParts + Int(microseconds >> UInt64(shift))
    }

    /// The shortest duration of a bucket.
    package static func lowerBound(of bucket: Int) -> Duration {
        .microseconds(lowerBound_us(of: bucket))
    }

    private static func lowerBound_us(of bucket: Int) -> Int {
        let parts = 1 << logOfParts
        guard bucket >= 2 * parts else { return bucket }
        let shift = bucket / parts - 1
        return (bucket - shift * parts) << shift
    }

    /// The number of the last bucket that a duration can have.
    package static let lastBucket = bucket(of: .nanoseconds(Int64.max))

    package mutating func add(_ duration: Duration, count: Int64 = 1) {
        add(bucket: Self.bucket(of: duration), count: count)
    }

    package mutating func add(bucket: Int, count: Int64) {
        if counts.isEmpty {
            first = bucket
        } else if bucket < first {
            counts.insert(contentsOf: repeatElement(0, count: first - bucket), at: 0)
            first = bucket
        }
        let index = bucket - first
        if index >= counts.count {
            counts.append(contentsOf: repeatElement(0, count: index + 1 - counts.count))
        }
        // Stored counts are untrusted input: sums saturate.
        counts[index].addSaturated(count)
        total.addSaturated(count)
    }

    package mutating func merge(_ other: DurationHistogram) {
        for entry in other.entries { add(bucket: entry.bucket, count: entry.count) }
    }

    /// The buckets in use with their counts, in order.
    package var entries: some Sequence<(bucket: Int, count: Int64)> {
        counts.indices.lazy.filter { counts[$0] != 0 }.map { (first + $0, counts[$0]) }
    }

    /// The quantile, interpolated within its bucket; zero for an empty histogram.
    ///
    /// - Parameter part: From 0 to 1: 0.5 for the median.
    package func quantile(_ part: Double) -> Duration {
        let wanted = part * Double(total)
        var passed = 0.0
        for (bucket, count) in entries {
            if passed + Double(count) >= wanted {
                let (lower, upper) = (
                    Self.lowerBound(of: bucket), Self.lowerBound(of: bucket + 1)
                )
                return lower + (upper - lower) * ((wanted - passed) / Double(count))
            }
            passed += Double(count)
        }
        return .zero
    }

    /// The sum of the squared durations, in seconds. Each duration counts as the middle of its bucket.
    package var squares: Double {
        entries.reduce(0) { sum, entry in
            // As numbers: dividing a `Duration` took a quarter of the time of `top` (measured).
            let seconds =
                Double(
                    Self.lowerBound_us(of: entry.bucket) + Self.lowerBound_us(of: entry.bucket + 1))
                / 2e6
            return sum + Double(entry.count) * seconds * seconds
        }
    }

    /// How many are not longer, including all of the duration's own bucket.
    package func count(upTo duration: Duration) -> Int64 {
        let last = Self.bucket(of: duration)
        return entries.reduce(0) { $1.bucket <= last ? $0.addingSaturated($1.count) : $0 }
    }

    package static func == (left: DurationHistogram, right: DurationHistogram) -> Bool {
        left.total == right.total
            && left.entries.elementsEqual(right.entries) { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) {
        for (bucket, count) in entries {
            hasher.combine(bucket)
            hasher.combine(count)
        }
    }
}
