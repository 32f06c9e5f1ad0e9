// Deletes rows that are too old, or too many: whole partitions at once, and single rows of the others. Open reports
// stay, as in a file.

internal import StallArchive
internal import StallStore
package import StallModel
import StallQuery

/// Deletes old reports and roll-ups of a cluster.
package struct ClusterPrune {
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime
    private let pause: (Double) -> Void

    /// - Parameter pause: Waits for a number of seconds.
    package init(
        _ cluster: ClickHouseCluster, clock: @escaping () -> UnixTime = UnixTime.now,
        pause: @escaping (Double) -> Void = ClickHouseServer.sleep(seconds:)
    ) {
        (self.cluster, self.clock, self.pause) = (cluster, clock, pause)
    }

    /// - Parameters:
    ///   - reportsSince: Reports that began before it are deleted; their roll-ups stay.
    ///   - bytes: The oldest days' reports are deleted until all tables are no larger on the shards' disks.
    ///   - rollUpsSince: Roll-ups of days before the one that it is in go, with the reports and watched time of those days.
    /// - Returns: How many reports were deleted.
    package func run(
        reportsSince: UnixTime?, bytes: Int64? = nil, rollUpsSince: UnixTime? = nil
    ) throws(ClickHouseError) -> Int {
        let firstDay = rollUpsSince?.microseconds.day
        let start = firstDay.map { UnixTime(microseconds: $0 * Int64.microsecondsOfDay) }
        var count = 0
        if let since = [reportsSince, start].compactMap({ $0 }).max() {
            count += try deleteReports(before: since, isNoted: start != nil)
        }
        if let start, let firstDay {
            try delete("exposure_local", "start_us < \(start.microseconds)", before: firstDay)
            for axis in CellAxis.allCases {
                try delete("\(axis.table)_local", "day < \(firstDay)", before: firstDay)
            }
        }
        guard let bytes else { return count }
        while let day = try ClusterSizes(cluster).firstDay(toKeep: bytes) {
            let deleted = try deleteReports(
                before: UnixTime(microseconds: day * Int64.microsecondsOfDay))
            // Open reports alone are left of these days.
            guard deleted > 0 else { break }
            count += deleted
        }
        return count
    }

    /// - Parameter isNoted: Also where there are none, since their roll-ups go.
    private func deleteReports(
        before time: UnixTime, isNoted: Bool = false
    ) throws(ClickHouseError) -> Int {
        // A time in the future must not limit future reports.
        guard let last = try lastStart() else { return 0 }
        let time = min(time, UnixTime(microseconds: last.microseconds.addingSaturated(1)))
        let open = try openReports(before: time)
        let count = try reportCount(before: time) - open.count
        guard count > 0 || isNoted else { return 0 }
        // Then they say all that the reports did.
        let rollUps = RollUpDays(cluster)
        try rollUps.renew(rollUps.stale().filter { $0 <= time.microseconds.day }, at: clock())
        try note(time)
        // Not by the state: the deletion of an ended report would leave an earlier revision in which it was open.
        let isOld: ClickHouseQuery = "start_us < \(time.microseconds)"
        let day = time.microseconds.day
        if open.isEmpty {
            try delete("report_local", isOld, before: day)
        } else {
            try delete(
                "report_local", "\(isOld) and id not in \(list: open.map(\.id.bytes))", before: day,
                keeping: Set(open.map { RollUpDays.span($0.day) }))
        }
        return count
    }

    private func lastStart() throws(ClickHouseError) -> UnixTime? {
        var rows = try cluster.server.rows(
            "select count(), max(start_us) from report", columnCount: 2)
        guard try rows.step(), try rows.integer() > 0 else { return nil }
        return UnixTime(microseconds: try rows.integer())
    }

    private func openReports(
        before time: UnixTime
    ) throws(ClickHouseError) -> [(id: UniqueID, day: Int64)] {
        var rows = try cluster.server.rows(
            """
            select id, day from \(Self.before(time).reports(cluster.server))
                and state = \(StallState.open.rawValue)
            order by id
            """, columnCount: 2)
        var open: [(id: UniqueID, day: Int64)] = []
        while try rows.step() { open.append((try rows.uniqueID(), try rows.integer())) }
        return open
    }

    private func reportCount(before time: UnixTime) throws(ClickHouseError) -> Int {
        var rows = try cluster.server.rows(
            "select count() from \(Self.before(time).reports(cluster.server))", columnCount: 1)
        return try rows.step() ? try rows.integer(as: Int.self) : 0
    }

    private static func before(_ time: UnixTime) -> ReportConditions {
        var filter = ReportFilter()
        filter.until = time
        return ReportConditions(filter)
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

    /// Drops the partitions before a day's, deletes the rows of the others that meet a condition, and waits until they are
    /// gone: the server would do that later.
    ///
    /// - Parameter kept: The partitions that have rows which are to stay.
    private func delete(
        _ table: ClickHouseQuery, _ condition: ClickHouseQuery, before day: Int64,
        keeping kept: Set<Int64> = []
    ) throws(ClickHouseError) {
        for shard in cluster.shards {
            for partition in try partitions(of: table, on: shard) {
                guard let number = Int64(partition), number < RollUpDays.span(day),
                    !kept.contains(number)
                else { continue }
                try shard.execute("alter table \(table) drop partition \(number)")
            }
            try shard.execute("alter table \(table) delete where \(condition)")
        }
        for shard in cluster.shards { try Mutations(shard, pause).wait(for: table) }
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
        while try rows.step() { partitions.append(try rows.text()) }
        return partitions
    }
}
