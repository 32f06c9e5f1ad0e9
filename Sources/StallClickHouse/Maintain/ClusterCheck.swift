// Finds faults of a cluster: shards that differ in shared rows, reports that refer to nothing or are stored twice, and
// roll-ups that are not those of the reports.

internal import StallArchive
internal import StallModel
internal import StallQuery

/// The findings of a check of a cluster, one per line.
package struct ClusterCheck {
    private let cluster: ClickHouseCluster
    private var faults: [String] = []

    /// - Throws: Why not all of it could be looked at: a shard that is down.
    package static func faults(of cluster: ClickHouseCluster) throws(ClickHouseError) -> [String] {
        var check = ClusterCheck(cluster: cluster)
        try check.checkDimensions()
        try check.checkReports()
        for axis in CellAxis.allCases { try check.checkRollUps(by: axis) }
        return check.faults
    }

    private init(cluster: ClickHouseCluster) { self.cluster = cluster }

    private mutating func checkDimensions() throws(ClickHouseError) {
        for table in SharedTable.all {
            if let fault = try table.fault(cluster) { faults.append(fault) }
        }
    }

    /// The rows that a report refers to must be on its own shard.
    private mutating func checkReports() throws(ClickHouseError) {
        for (number, shard) in cluster.shards.enumerated() {
            let conditions: [(ClickHouseQuery, String)] = [
                ("source not in (select store from source)", "a source"),
                ("loop not in (select hash from loop)", "a loop"),
                ("signature != 0 and signature not in (select key from signature)", "a group"),
                ("arrayExists(s -> s = 0, stack)", "a stack"),
            ]
            for (condition, noun) in conditions {
                let count = try self.number(
                    shard, "select count() from report_local where \(condition)")
                if count > 0 {
                    faults.append(
                        "shard \(number + 1): \(count) reports of \(noun) that is missing")
                }
            }
            let missing = try self.number(
                shard,
                """
                select count() from (select distinct arrayJoin(stack) as one from report_local)
                where one not in (select hash from stack)
                """)
            if missing > 0 { faults.append("shard \(number + 1): \(missing) stacks are missing") }
        }
        let twice = try DoubledReports(cluster).ids().count
        if twice > 0 { faults.append("\(twice) reports are on several shards") }
    }

    /// Compares each bucket of the days that count as fresh with the reports.
    private mutating func checkRollUps(by axis: CellAxis) throws(ClickHouseError) {
        var cohort: ClickHouseQuery =
            "day, app, version, build_id, loop_name, verdict, cause, is_watched"
        if let column = axis.column { cohort = "\(cohort), \(column)" }
        let pruned = try GroupingRow(cluster.server)?.prunedBefore?.microseconds.day ?? Int64.min
        // Days whose reports were pruned are in roll-ups only.
        var rows = try cluster.server.rows(
            """
            select day, sum(n), sum(toFloat64(total)) from (
                select \(cohort), sum(n) as n, sum(total) as total, sum(cpu) as cpu,
                    sum(low) as low, sum(high) as high, sum(delayed) as delayed
                from (
                    select \(cohort), toInt64(sum(report_count)) as n, \(sum: "total_ns") as total,
                        \(sum: "cpu_ns") as cpu, max(max_ns) as high, min(min_ns) as low,
                        \(sum: "delayed_ns") as delayed
                    from \(axis.table)
                    where (day, generation) global in (
                        select day, generation from rollup_day final where is_fresh = 1)
                    group by \(cohort)
                    union all
                    select \(cohort), -toInt64(count()) as n, -\(sum: "duration_ns") as total,
                        -\(sum: "cpu_ns") as cpu, -max(duration_ns) as high, -min(duration_ns) as low,
                        -\(sum: "delayed_ns") as delayed
                    from (
                        select *, (source, loop) global in (select source, loop from watched_loop)
                            as is_watched
                        from report final
                        where signature != 0
                            and day global in (
                                select day from rollup_day final where is_fresh = 1))
                    group by \(cohort))
                where day > \(pruned)
                group by \(cohort)
                having n != 0 or total != 0 or cpu != 0 or low != 0 or high != 0 or delayed != 0)
            group by day order by day
            """, columnCount: 3)
        while try rows.step() {
            let (day, count): (Int64, Int64) = (try rows.integer(), try rows.integer())
            let total = Int64(nearest: try rows.double())
            let noun =
                switch axis {
                case .signature: "roll-ups"
                case .host: "roll-ups by host"
                case .none: "roll-ups by build"
                }
            faults.append(
                "\(noun) of day \(day): \(count) reports and \(total) ns more than the reports say")
        }
    }

    private func number(
        _ server: ClickHouseServer, _ question: ClickHouseQuery
    ) throws(ClickHouseError) -> Int64 {
        var rows = try server.rows(question, columnCount: 1)
        return try rows.step() ? try rows.integer() : 0
    }
}
