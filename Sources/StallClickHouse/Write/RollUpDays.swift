// Marks the days whose roll-ups are those of all their reports. A day is marked before reports of it are added, and its
// totals are added up again behind them, from the reports: adding twice changes nothing.

internal import StallArchive
package import StallModel
internal import StallStore

/// The days of a cluster's roll-ups.
package struct RollUpDays {
    private let cluster: ClickHouseCluster

    package init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// Questions about these days read reports from now on.
    ///
    /// - Parameter now: The wall clock's time. Roll-ups count as those of all reports if they were begun after the last
    ///   mark; the clocks of all writers must agree as far as two of them write at once.
    package func mark(_ days: Set<Int64>, at now: UnixTime) throws(ClickHouseError) {
        let outbox = Outbox(cluster)
        try mark(days, at: now, outbox)
        try outbox.flush()
    }

    /// The same, once the outbox is flushed.
    func mark(_ days: Set<Int64>, at now: UnixTime, _ outbox: Outbox) throws(ClickHouseError) {
        try write(days, generation: 0, isFresh: false, at: now, outbox)
    }

    /// The days whose roll-ups are not those of all reports, some that have none at all among them. Of days whose reports
    /// were pruned there are only the roll-ups.
    package func stale() throws(ClickHouseError) -> Set<Int64> {
        let pruned = try GroupingRow(cluster.server)?.prunedBefore?.microseconds.day
        var rows = try cluster.server.rows(
            """
            select distinct day from report where day global not in (
                select day from rollup_day final where is_fresh = 1)
            union all
            select day from rollup_day final where is_fresh = 0
            """, columnCount: 1)
        var days: Set<Int64> = []
        while try rows.step() { days.insert(try rows.day()) }
        if let pruned { days = days.filter { $0 > pruned } }
        return days
    }

    /// The days that reports began on and that may be added up again.
    func withReports() throws(ClickHouseError) -> Set<Int64> {
        let pruned = try GroupingRow(cluster.server)?.prunedBefore?.microseconds.day ?? Int64.min
        var rows = try cluster.server.rows(
            "select distinct day from report where day > \(pruned)", columnCount: 1)
        var days: Set<Int64> = []
        while try rows.step() { days.insert(try rows.day()) }
        return days
    }

    /// Adds days up again, each shard its own reports.
    ///
    /// - Parameter now: The wall clock's time, which is the number of the generation as well.
    package func renew(_ days: Set<Int64>, at now: UnixTime) throws(ClickHouseError) {
        // A span of days is a partition; more at a time would be more memory at a time.
        for (span, days) in Dictionary(grouping: days, by: Self.span).sorted(by: { $0.key < $1.key }
        ) {
            // All shards at once, and each one statement at a time: two would be more memory as well.
            let sums = RollUpStatements(days.sorted(), generation: now.microseconds)
            for statement in sums.statements {
                try ClickHouseWrite.send(cluster.shards.map { ClickHouseWrite(statement, on: $0) })
            }
            // Every shard has them.
            let outbox = Outbox(cluster)
            try write(Set(days), generation: now.microseconds, isFresh: true, at: now, outbox)
            try outbox.flush()
            for shard in cluster.shards {
                for axis in CellAxis.allCases {
                    try deleteOld(of: axis, span, on: shard)
                }
            }
        }
    }

    /// The partition of a day, as `intDiv` has it.
    static func span(_ day: Int64) -> Int64 { day / 32 }

    private func write(
        _ days: Set<Int64>, generation: Int64, isFresh: Bool, at now: UnixTime, _ outbox: Outbox
    ) throws(ClickHouseError) {
        guard !days.isEmpty else { return }
        var rows = TabSeparatedWriter()
        for day in days.sorted() {
            rows.add(day)
            rows.add(generation)
            rows.add(isFresh)
            rows.add(now.microseconds)
            rows.endRow()
        }
        for shard in cluster.shards {
            try outbox.add(
                rows.bytes, into: "rollup_day (day, generation, is_fresh, version)", of: shard)
        }
    }

    /// Deletes rows that no reader uses any more, once they are as many as the others: the server writes the partition
    /// again for it. A generation goes when its day has a later one; those of jobs that still run are later.
    private func deleteOld(
        of axis: CellAxis, _ span: Int64, on shard: ClickHouseServer
    ) throws(ClickHouseError) {
        let table: ClickHouseQuery = "\(axis.table)_local"
        var rows = try shard.rows(
            """
            select day, max(fresh), sum(is_old), count() from (
                select day, generation, toUInt64(generation < fresh) as is_old, fresh
                from \(table) any left join (
                    select day, generation as fresh from rollup_day final where is_fresh = 1
                ) as latest using day
                where intDiv(day, 32) = \(span))
            group by day
            """, columnCount: 4)
        var (oldCount, count) = (Int64(0), Int64(0))
        var areOld: [ClickHouseQuery] = []
        while try rows.step() {
            let ofDay: Int64 = try rows.integer(at: 2)
            oldCount = oldCount.addingSaturated(ofDay)
            count = count.addingSaturated(try rows.integer(at: 3))
            guard ofDay > 0 else { continue }
            areOld.append(
                "day = \(try rows.integer(at: 0) as Int64) and generation < \(try rows.integer(at: 1) as Int64)"
            )
        }
        guard oldCount > 0, oldCount.addingSaturated(oldCount) >= count else { return }
        try shard.execute("alter table \(table) delete where \(.joined(areOld, by: " or "))")
    }
}
