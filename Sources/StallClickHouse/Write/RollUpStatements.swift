// The statements that add up a shard's reports by day. Sums and buckets are the same as in SQLite's roll-ups
// (StallArchive/Aggregate/RollUpTotals.swift).

/// Adds up the reports of some days on one shard.
struct RollUpStatements {
    private let days: [Int64]
    private let generation: Int64

    init(_ days: [Int64], generation: Int64) { (self.days, self.generation) = (days, generation) }

    /// One for each table.
    var statements: [ClickHouseQuery] { CellAxis.allCases.map(statement) }

    /// Reports are added up by bucket first, and the buckets then make the histogram of a group: measured, `sumMap` over
    /// reports takes several times as long.
    private func statement(by axis: CellAxis) -> ClickHouseQuery {
        let cohort: ClickHouseQuery =
            "day, app, version, build_id, loop_name, verdict, cause, is_watched"
        let key = axis.column.map { cohort + ", " + $0 } ?? cohort
        return """
            insert into \(axis.table)_local (\(key), generation, report_count, total_ns, cpu_ns, min_ns,
                max_ns, max_id, first_us, last_us, bucket, bucket_count, delayed_ns)
            select \(key), \(generation), sum(part_count), \(sum: "part_total"), \(sum: "part_cpu"),
                min(part_min), tupleElement(max(part_longest) as longest, 1),
                tupleElement(longest, 2), min(part_first), max(part_last), groupArray(bucket),
                groupArray(part_count), \(sum: "part_delayed")
            from (
                select \(key), bucket, toInt64(count()) as part_count,
                    \(sum: "duration_ns") as part_total, \(sum: "cpu_ns") as part_cpu,
                    min(duration_ns) as part_min,
                    max(tuple(duration_ns, id)) as part_longest, min(start_us) as part_first,
                    max(start_us) as part_last, \(sum: "delayed_ns") as part_delayed
                from (
                    select *, (source, loop) in (select source, loop from watched_loop) as is_watched
                    from report_local final
                    where day in \(list: days) and signature != 0)
                group by \(key), bucket
                order by \(key), bucket)
            group by \(key)
            """
    }
}
