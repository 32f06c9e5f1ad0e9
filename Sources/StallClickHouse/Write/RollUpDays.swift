// Which days' roll-ups are those of all their reports, and how they become that. A day is marked before reports of it are
// added, and its totals are added up again behind them, from the reports: adding twice changes nothing.

internal import StallArchive
package import StallModel

/// The days of a cluster's roll-ups.
package struct RollUpDays {
    private let cluster: ClickHouseCluster

    package init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// Questions about these days read reports from now on.
    ///
    /// - Parameter now: The wall clock's time. Roll-ups count as those of all reports if they were begun after the last
    ///   mark; the clocks of those who write must agree as far as two of them write at once.
    package func mark(_ days: Set<Int64>, at now: UnixTime) throws(ClickHouseError) {
        try write(days, generation: 0, isFresh: false, at: now)
    }

    /// The days whose roll-ups are not those of all reports, some that have none at all among them. Of days whose reports
    /// were pruned only the roll-ups tell.
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
        while try rows.step() { days.insert(try rows.integer(at: 0)) }
        if let pruned { days = days.filter { $0 > pruned } }
        return days
    }

    /// The days that reports began on and that may be added up again.
    package func withReports() throws(ClickHouseError) -> Set<Int64> {
        let pruned = try GroupingRow(cluster.server)?.prunedBefore?.microseconds.day ?? Int64.min
        var rows = try cluster.server.rows(
            "select distinct day from report where day > \(pruned)", columnCount: 1)
        var days: Set<Int64> = []
        while try rows.step() { days.insert(try rows.integer(at: 0)) }
        return days
    }

    /// Adds days up again, each shard its own reports.
    ///
    /// - Parameter now: The wall clock's time, which is the number of the generation as well.
    package func renew(_ days: Set<Int64>, at now: UnixTime) throws(ClickHouseError) {
        // A span of days is a partition of the reports; more at a time would be more memory at a time.
        for (_, days) in Dictionary(grouping: days, by: { $0 >> 5 }).sorted(by: { $0.key < $1.key })
        {
            for shard in cluster.shards {
                try RollUpStatements(days.sorted(), generation: now.microseconds).run(on: shard)
            }
            // Every shard has them.
            try write(Set(days), generation: now.microseconds, isFresh: true, at: now)
        }
        try dropOld(days, except: now.microseconds)
    }

    private func write(
        _ days: Set<Int64>, generation: Int64, isFresh: Bool, at now: UnixTime
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
            try shard.insert(into: "rollup_day (day, generation, is_fresh, version)", rows.bytes)
        }
    }

    /// Drops the generations of these days that no reader uses any more, those of jobs that ended half-way included.
    private func dropOld(_ days: Set<Int64>, except generation: Int64) throws(ClickHouseError) {
        for shard in cluster.shards {
            for table in ["rollup_local", "host_rollup_local"] {
                var rows = try shard.rows(
                    """
                    select distinct partition from system.parts
                    where database = \(shard.address.database) and table = \(table) and active
                    """, columnCount: 1)
                while try rows.step() {
                    let numbers = Self.numbers(ofPartition: try rows.text(at: 0))
                    guard numbers.count == 2, days.contains(numbers[0]), numbers[1] < generation
                    else { continue }
                    try shard.execute(
                        """
                        alter table \(name: table) drop partition (\(numbers[0]), \(numbers[1]))
                        """)
                }
            }
        }
    }

    /// The day and the generation in the name of a partition: `(20405,1763894400000000)`.
    static func numbers(ofPartition name: String) -> [Int64] {
        name.split { !("0"..."9" ~= $0 || $0 == "-") }.compactMap { Int64($0) }
    }
}
