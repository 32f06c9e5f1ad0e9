// Time divided into buckets, for trends.

package import StallModel
import StallQuery

/// Consecutive buckets of a time range, without gaps.
package struct TimeBuckets: Hashable, Sendable {
    /// The start of each bucket, then the end of the last.
    package let bounds: [UnixTime]

    package var count: Int { bounds.count - 1 }

    /// - Parameter bounds: At least two, in order.
    package init(bounds: [UnixTime]) { self.bounds = bounds }

    /// Equal buckets from the first instant to the last, which is included in the last bucket.
    package init(from first: UnixTime, through last: UnixTime, count: Int) {
        let span = max(last.microseconds - first.microseconds + 1, Int64(count))
        bounds = (0...count).map { part in
            let (product, overflow) = span.multipliedReportingOverflow(by: Int64(part))
            let offset = overflow ? span / Int64(count) * Int64(part) : product / Int64(count)
            return UnixTime(microseconds: first.microseconds + offset)
        }
    }

    /// The bucket that contains the instant; nil outside of the range.
    package func index(of time: UnixTime) -> Int? { bounds.part(of: time) }
}

extension UnixTime {
    /// Noon, UTC, of a day since 1970; of a day that no clock has, the nearest time.
    init(noonOf day: Int) {
        let limit = Int64.max / 86_400_000_000 - 1
        let day = Swift.min(Swift.max(Int64(day), -limit), limit)
        self.init(microseconds: day * 86_400_000_000 + 43_200_000_000)
    }
}

/// Stalls far from all others: of a machine that booted without a clock, in 1970.
enum OutlyingTimes {
    /// The time without the few stalls that a long gap separates from the others.
    ///
    /// A gap of three quarters of the time with at most a twentieth of the stalls behind it.
    static func core(
        of times: some Sequence<(UnixTime, Int)>, from first: UnixTime, through last: UnixTime
    ) -> (first: UnixTime, last: UnixTime) {
        var counts: [Int64: Int] = [:]
        for (time, count) in times {
            let day = time.microseconds / 86_400_000_000
            counts[day] = Self.sum(counts[day] ?? 0, count)
        }
        var days = counts.sorted { $0.key < $1.key }[...]
        let all = days.reduce(0) { Self.sum($0, $1.value) }
        guard all >= 20 else { return (first, last) }
        var (begin, end) = (first, last)
        while let one = days.first, let other = days.last, days.count > 1 {
            let span = Double(other.key) - Double(one.key)
            let gaps = zip(days.indices, days.indices.dropFirst()).map {
                (before: $0, length: Double(days[$1].key) - Double(days[$0].key))
            }
            let largest = gaps.max { $0.length < $1.length }!
            guard largest.length > span * 0.75 else { break }
            let before = days[...largest.before].reduce(0) { Self.sum($0, $1.value) }
            let after = days[(largest.before + 1)...].reduce(0) { Self.sum($0, $1.value) }
            if before <= all / 20 {
                days = days[(largest.before + 1)...]
                begin = UnixTime(microseconds: days.first!.key * 86_400_000_000)
            } else if after <= all / 20 {
                days = days[...largest.before]
                end = UnixTime(microseconds: days.last!.key * 86_400_000_000 + 86_399_999_999)
            } else {
                break
            }
        }
        return (begin, end)
    }

    private static func sum(_ left: Int, _ right: Int) -> Int {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}
