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
