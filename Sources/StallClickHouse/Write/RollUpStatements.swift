// The statements that add up a shard's reports by day. What is added up, and into which buckets, is as SQLite's roll-ups have
// it (StallArchive/Aggregate/RollUpTotals.swift).

/// Adds up the reports of some days on one shard.
struct RollUpStatements {
    private let days: [Int64]
    private let generation: Int64

    init(_ days: [Int64], generation: Int64) { (self.days, self.generation) = (days, generation) }

    func run(on shard: ClickHouseServer) throws(ClickHouseError) {
        try shard.execute(statement(into: "rollup_local", by: "signature"))
        try shard.execute(statement(into: "host_rollup_local", by: "host"))
    }

    /// Reports are added up by bucket first, and the buckets then make the histogram of a group: measured, `sumMap` over
    /// reports takes several times as long.
    private func statement(
        into table: ClickHouseQuery, by key: ClickHouseQuery
    ) -> ClickHouseQuery {
        let cohort: ClickHouseQuery =
            "day, app, version, build_id, loop_name, verdict, cause, is_watched, \(key)"
        return """
            insert into \(table) (\(cohort), generation, report_count, total_ns, cpu_ns, min_ns,
                max_ns, max_id, first_us, last_us, bucket, bucket_count)
            select \(cohort), \(generation), sum(part_count), sum(part_total), sum(part_cpu),
                min(part_min), max(part_max), argMax(part_max_id, part_max), min(part_first),
                max(part_last), groupArray(bucket), groupArray(part_count)
            from (
                select \(cohort), bucket, toInt64(count()) as part_count, sum(duration_ns) as part_total,
                    sum(cpu_ns) as part_cpu, min(duration_ns) as part_min, max(duration_ns) as part_max,
                    argMax(id, duration_ns) as part_max_id, min(start_us) as part_first,
                    max(start_us) as part_last
                from (
                    select *, (source, loop) in (select source, loop from watched_loop) as is_watched
                    from report_local final
                    where day in \(list: days) and signature != 0)
                group by \(cohort), bucket
                order by \(cohort), bucket)
            group by \(cohort)
            """
    }
}
