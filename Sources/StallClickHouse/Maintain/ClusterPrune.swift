// Deletes what is too old: whole partitions at once, and of the partition that the time is in, its rows.

internal import StallArchive
internal import StallStore
package import StallModel

/// Deletes old reports and roll-ups of a cluster.
package struct ClusterPrune {
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime

    package init(_ cluster: ClickHouseCluster, clock: @escaping () -> UnixTime = UnixTime.now) {
        (self.cluster, self.clock) = (cluster, clock)
    }

    /// - Parameters:
    ///   - reportsSince: Reports that began before it go; what roll-ups say of them stays.
    ///   - rollUpsSince: Roll-ups of days before the one that it is in go, with the reports and watched time of those days.
    /// - Returns: How many reports were deleted.
    package func run(
        reportsSince: UnixTime?, rollUpsSince: UnixTime?
    ) throws(ClickHouseError) -> Int {
        let firstDay = rollUpsSince?.microseconds.day
        let start = firstDay.map { UnixTime(microseconds: $0 * Int64.microsecondsOfDay) }
        guard let since = [reportsSince, start].compactMap({ $0 }).max() else { return 0 }
        // Then they say all that the reports did.
        let rollUps = RollUpDays(cluster)
        try rollUps.renew(rollUps.stale().filter { $0 <= since.microseconds.day }, at: clock())
        let count = try reportCount(before: since)
        try note(since)
        try delete("report_local", before: since)
        if let start, let firstDay {
            try delete("exposure_local", before: start)
            try deleteRollUps(before: firstDay)
        }
        return count
    }

    private func reportCount(before time: UnixTime) throws(ClickHouseError) -> Int {
        var rows = try cluster.server.rows(
            "select count() from report final where start_us < \(time.microseconds)",
            columnCount: 1)
        return try rows.step() ? try rows.integer(at: 0, as: Int.self) : 0
    }

    /// First of all: from now on no job adds these days up again.
    private func note(_ time: UnixTime) throws(ClickHouseError) {
        guard let known = try GroupingRow(cluster.server) else { return }
        let latest = max(time.microseconds, known.prunedBefore?.microseconds ?? 0)
        for shard in cluster.shards {
            try shard.execute(
                """
                insert into grouping (id, rules_hash, pruned_before_us, version)
                values (1, \(known.rulesHash), \(latest), \(clock().microseconds))
                """)
        }
    }

    private func delete(
        _ table: ClickHouseQuery, before time: UnixTime
    ) throws(ClickHouseError) {
        for shard in cluster.shards {
            try delete(
                table, "start_us < \(time.microseconds)", before: time.microseconds.day, on: shard)
        }
    }

    /// Drops the partitions before a day's, and of that one deletes the rows that meet a condition.
    private func delete(
        _ table: ClickHouseQuery, _ condition: ClickHouseQuery, before day: Int64,
        on shard: ClickHouseServer
    ) throws(ClickHouseError) {
        for partition in try partitions(of: table, on: shard) {
            guard let number = Int64(partition), number < RollUpDays.span(day) else { continue }
            try shard.execute("alter table \(table) drop partition \(number)")
        }
        try shard.execute("alter table \(table) delete where \(condition)")
    }

    private func deleteRollUps(before day: Int64) throws(ClickHouseError) {
        for shard in cluster.shards {
            for axis in CellAxis.allCases {
                try delete("\(axis.table)_local", "day < \(day)", before: day, on: shard)
            }
        }
    }

    private func partitions(
        of table: ClickHouseQuery, on shard: ClickHouseServer
    ) throws(ClickHouseError) -> [String] {
        var rows = try shard.rows(
            """
            select distinct partition from system.parts
            where database = \(shard.address.database) and table = \(table.sql) and active
            """, columnCount: 1)
        var partitions: [String] = []
        while try rows.step() { partitions.append(try rows.text(at: 0)) }
        return partitions
    }
}
