// The totals of one roll-up bucket, and the numbers that one report adds to them. Pure.

internal import StallModel
internal import StallQuery
internal import StallStore

/// The bucket of the roll-up that a report counts in.
struct RollUpCell: Hashable, Comparable {
    /// Days since 1970, UTC.
    var day: Int64
    /// The number of days in the bucket.
    var dayCount: Int64 = 1
    var dimension: Int64
    var signature: Int64

    static let longDays: Int64 = 32

    /// The bucket of 32 days that this bucket of one day is a part of.
    var long: RollUpCell {
        var cell = self
        cell.dayCount = Self.longDays
        cell.day = Self.longDay(day)
        return cell
    }

    static func longDay(_ day: Int64) -> Int64 { day.floored(by: longDays) * longDays }

    static func < (left: RollUpCell, right: RollUpCell) -> Bool {
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
struct RollUpTotals: Hashable {
    var count: Int64 = 0
    // Sums end at the largest number. Nothing can be taken away from one that has: it is added up again (`apply`).
    var total_ns: Int64 = 0
    var cpu_ns: Int64 = 0
    var min_ns = Int64.max
    var max_ns = Int64.min
    var maxSource: Int64 = 0
    var maxSeq: Int64 = 0
    var first_us = Int64.max
    var last_us = Int64.min
    var histogram = DurationHistogram()
    /// The part of the total that was not the threads' own.
    var delayed_ns: Int64 = 0

    mutating func add(_ entry: RollUpEntry) {
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
    var isPlausible: Bool {
        count <= 0
            || cpu_ns >= 0 && product(min_ns) <= total_ns && total_ns <= product(max_ns)
                && 0...max(0, total_ns) ~= delayed_ns
    }

    /// The total of as many reports as there are, each so long.
    private func product(_ duration_ns: Int64) -> Int64 {
        let (sum, overflow) = max(0, duration_ns).multipliedReportingOverflow(by: count)
        return overflow ? .max : sum
    }

    /// Adds reports and takes others away.
    ///
    /// - Returns: Whether sums and extremes are still exact: the next extreme after one that was removed, and a sum
    ///   that had reached the largest number, can only be computed from the reports that are left.
    mutating func apply(_ changes: some Sequence<(entry: RollUpEntry, isRemoved: Bool)>) -> Bool {
        var added: [RollUpEntry] = []
        var removed: [RollUpEntry] = []
        for (entry, isRemoved) in changes {
            if isRemoved { removed.append(entry) } else { added.append(entry) }
        }
        if !removed.isEmpty { Self.cancel(&added, &removed) }
        // All reports that were here were removed: only the added ones are left.
        if !removed.isEmpty, count == Int64(removed.count) {
            self = RollUpTotals()
            removed = []
        }
        for entry in added { add(entry) }
        let isFull = total_ns == .max || cpu_ns == .max || delayed_ns == .max
        for entry in removed { remove(entry) }
        // Where reports were pruned it stays, as near as is known.
        if total_ns == .max { total_ns = product(max_ns) }
        delayed_ns = min(delayed_ns, max(0, total_ns))
        return count == 0
            || !(isFull && !removed.isEmpty)
                && removed.allSatisfy { entry in
                    let wasExtreme =
                        entry.duration_ns == min_ns && !added.contains { $0.duration_ns == min_ns }
                        || entry.duration_ns == max_ns
                            && (entry.source, entry.seq) == (maxSource, maxSeq)
                        || (entry.start_us == first_us || entry.start_us == last_us)
                            && !added.contains { $0.start_us == entry.start_us }
                    return !wasExtreme
                }
    }

    /// Leaves out reports that were both added and removed.
    private static func cancel(_ added: inout [RollUpEntry], _ removed: inout [RollUpEntry]) {
        var balance: [RollUpEntry: Int] = [:]
        for entry in added { balance[entry, default: 0] += 1 }
        for entry in removed { balance[entry, default: 0] -= 1 }
        added = balance.flatMap { entry, count in repeatElement(entry, count: max(0, count)) }
        removed = balance.flatMap { entry, count in repeatElement(entry, count: max(0, -count)) }
    }

    private mutating func remove(_ entry: RollUpEntry) {
        count -= 1
        // An older program may have left a sum that had wrapped.
        if total_ns < .max { total_ns &-= entry.duration_ns }
        if cpu_ns < .max { cpu_ns &-= entry.cpu_ns }
        // Never less than none, whatever a row says that was changed by others.
        if delayed_ns < .max { delayed_ns = max(0, delayed_ns - entry.delayed_ns) }
        histogram.add(
            bucket: DurationHistogram.bucket(of: .nanoseconds(entry.duration_ns)), count: -1)
    }
}
