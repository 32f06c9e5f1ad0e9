// The totals of one roll-up bucket, and the numbers that one report adds to them. Pure.

internal import StallModel
package import StallQuery
package import StallStore

/// The bucket of the roll-up that a report counts in.
package struct RollUpCell: Hashable, Comparable {
    /// Days since 1970, UTC.
    package var day: Int64
    /// The number of days in the bucket.
    package var dayCount: Int64
    package var dimension: Int64
    package var signature: Int64

    package init(day: Int64, dayCount: Int64 = 1, dimension: Int64, signature: Int64) {
        (self.day, self.dayCount) = (day, dayCount)
        (self.dimension, self.signature) = (dimension, signature)
    }

    package static let longDays: Int64 = 32

    /// The bucket of 32 days that this bucket of one day is a part of.
    package var long: RollUpCell {
        var cell = self
        cell.dayCount = Self.longDays
        cell.day = Self.longDay(day)
        return cell
    }

    package static func longDay(_ day: Int64) -> Int64 { day.floored(by: longDays) * longDays }

    package static func < (left: RollUpCell, right: RollUpCell) -> Bool {
        (left.day, left.dimension, left.signature) < (right.day, right.dimension, right.signature)
    }
}

extension Int64 {
    /// How often `step` fits below the number; negative below zero.
    fileprivate func floored(by step: Int64) -> Int64 {
        self / step - (self % step < 0 ? 1 : 0)
    }

    /// The day that a time in microseconds is in.
    package var day: Int64 { floored(by: Self.microsecondsOfDay) }

    package static let microsecondsOfDay: Int64 = 86_400_000_000
}

/// The totals of one bucket.
package struct RollUpTotals: Hashable {
    package var count: Int64 = 0
    // Sums end at the largest number. Nothing can be taken away from one that has: it is added up again (`apply`).
    package var total_ns: Int64 = 0
    package var cpu_ns: Int64 = 0
    package var min_ns = Int64.max
    package var max_ns = Int64.min
    package var maxSource: Int64 = 0
    package var maxSeq: Int64 = 0
    package var first_us = Int64.max
    package var last_us = Int64.min
    package var histogram = DurationHistogram()
    /// The part of the total that was not the threads' own.
    package var delayed_ns: Int64 = 0

    package init() {}

    package mutating func add(_ entry: RollUpEntry) {
        count += 1
        total_ns.addSaturated(entry.duration_ns)
        cpu_ns.addSaturated(entry.cpu_ns)
        min_ns = min(min_ns, entry.duration_ns)
        noteLongest(entry.duration_ns, entry.source, entry.seq)
        first_us = min(first_us, entry.start_us)
        last_us = max(last_us, entry.start_us)
        histogram.add(.nanoseconds(entry.duration_ns))
        delayed_ns.addSaturated(entry.delayed_ns)
    }

    mutating func add(_ other: RollUpTotals) {
        count.addSaturated(other.count)
        total_ns.addSaturated(other.total_ns)
        cpu_ns.addSaturated(other.cpu_ns)
        min_ns = min(min_ns, other.min_ns)
        noteLongest(other.max_ns, other.maxSource, other.maxSeq)
        first_us = min(first_us, other.first_us)
        last_us = max(last_us, other.last_us)
        histogram.merge(other.histogram)
        delayed_ns.addSaturated(other.delayed_ns)
    }

    /// Of several that lasted as long it is the first: the same one in whatever order they come.
    mutating func noteLongest(_ duration_ns: Int64, _ source: Int64, _ seq: Int64) {
        let isLongest =
            duration_ns > max_ns
            || duration_ns == max_ns && (source, seq) < (maxSource, maxSeq)
        if isLongest { (max_ns, maxSource, maxSeq) = (duration_ns, source, seq) }
    }

    /// Whether the sums can be those of this number of reports between the shortest and the longest. Extremes are never
    /// too narrow, whatever was pruned; in older programs sums wrapped.
    package var isPlausible: Bool {
        count <= 0
            || cpu_ns >= 0 && product(min_ns) <= total_ns && total_ns <= product(max_ns)
                && 0...max(0, total_ns) ~= delayed_ns
    }

    /// The total of as many reports as there are, each so long.
    package func product(_ duration_ns: Int64) -> Int64 {
        let (sum, overflow) = max(0, duration_ns).multipliedReportingOverflow(by: count)
        return overflow ? .max : sum
    }
}
