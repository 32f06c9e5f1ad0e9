// Changes to the totals of one bucket, by the reports of a batch. Pure.

internal import StallArchive
internal import StallQuery
internal import StallStore

extension RollUpTotals {
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
