// The watched time of a cluster, in which no report was made.

internal import StallArchive
package import StallModel
package import StallQuery
internal import StallStore

extension ClusterStore {
    package func watchedLoops(
        _ filter: ReportFilter, withLengths: Bool
    ) throws -> [LoopExposure] {
        let whole = try exposure(filter, withLengths, of: .whole)
        let hasEnds = filter.since != nil || filter.until != nil
        let parts = try hasEnds ? exposure(filter, withLengths, of: .divided) : []
        guard !whole.isEmpty else { return parts }
        return LoopExposure.sums(whole + parts)
    }

    enum Stretches { case whole, divided }

    /// The queries of `watchedTimes` for all time and, where they are asked for, of `suppressedTotals`, to be sent
    /// ahead.
    static func exposureQuestions(
        _ server: ClickHouseServer, _ filter: ReportFilter, withSuppressions: Bool
    ) -> [ClickHouseQuery] {
        [watchedTimeQuestion(filter)]
            + (withSuppressions ? [suppressionQuestion(server, filter)] : [])
    }

    private static func conditions(
        _ filter: ReportFilter, of stretches: Stretches
    ) -> ReportConditions {
        var named = filter
        (named.since, named.until, named.verdicts, named.causes) = (nil, nil, nil, nil)
        named.states = nil
        var conditions = ReportConditions(named)
        let end: ClickHouseQuery = "start_us + intDiv(watched_ns, 1000)"
        var isInside: [ClickHouseQuery] = []
        if let since = filter.since?.microseconds {
            conditions.add("\(end) > \(since)")
            isInside.append("start_us >= \(since)")
        }
        if let until = filter.until?.microseconds {
            conditions.add("start_us < \(until)")
            isInside.append("\(end) <= \(until)")
        }
        let inside: ClickHouseQuery = isInside.isEmpty ? "1" : .joined(isInside, by: " and ")
        conditions.add(stretches == .whole ? "(\(inside))" : "not (\(inside))")
        return conditions
    }

    /// The hashes of the loops.
    private static func loops(
        _ filter: ReportFilter, of stretches: Stretches
    ) -> ClickHouseQuery {
        "select loop from exposure where \(conditions(filter, of: stretches).sql)"
    }

    private static func exposureQuestion(
        _ filter: ReportFilter, _ withLengths: Bool, of stretches: Stretches
    ) -> ClickHouseQuery {
        // Each divided stretch is a sum of its own.
        let key: ClickHouseQuery = stretches == .whole ? "loop" : "loop, source, revision"
        let lengths: ClickHouseQuery =
            withLengths
            ? """
            tupleElement(sums, 1), arrayMap(
                count -> toInt64(least(count, toFloat64(\(LengthHistogram.largestCount)))), tupleElement(sums, 2))
            """
            : "emptyArrayUInt16(), emptyArrayInt64()"
        let sums: ClickHouseQuery =
            withLengths
            ? "sumMap(length_bucket, arrayMap(count -> toFloat64(count), length_count))" : "0"
        return """
            select loop, first, watched, busy, delayed, stalls, stalled, iterations, \(lengths)
            from (select \(key), min(start_us) as first, \(sum: "watched_ns") as watched,
                \(sum: "busy_ns") as busy, \(sum: "ready_delay_ns") as delayed,
                \(sum: "micro_stall_count") as stalls, \(sum: "micro_stall_ns") as stalled,
                \(sum: "iteration_count") as iterations, \(sums) as sums
                from exposure final where \(conditions(filter, of: stretches).sql) group by \(key))
            order by loop, first
            """
    }

    /// The cluster adds up what the time has all of. Of stretches that its ends divide, the store in memory takes the part.
    private func exposure(
        _ filter: ReportFilter, _ withLengths: Bool, of stretches: Stretches
    ) throws -> [LoopExposure] {
        var rows = try server.rows(
            Self.exposureQuestion(filter, withLengths, of: stretches), columnCount: 10)
        var found: [(loop: Int64, values: [Int64], lengths: LengthHistogram)] = []
        while try rows.step() {
            let (buckets, counts) = (try rows.integers(at: 8), try rows.integers(at: 9))
            guard buckets.count == counts.count else {
                throw rows.bad(9, "as many counts as buckets")
            }
            var histogram: [Int: Int] = [:]
            for (bucket, count) in zip(buckets, counts) {
                guard 0..<Int64(LengthHistogram.bucketCount) ~= bucket,
                    0...Int64(LengthHistogram.largestCount) ~= count
                else { throw rows.bad(8, "buckets of a histogram") }
                histogram[Int(bucket)] = Int(count)
            }
            let values: [Int64] = try (1...7).map { try rows.integer(at: $0) }
            guard ValueLimits.readableTimes ~= values[0], values.dropFirst().allSatisfy({ $0 >= 0 })
            else { throw rows.bad(1, "a time, and sums of times and counts") }
            found.append((try rows.integer(at: 0), values, LengthHistogram(counts: histogram)))
        }
        guard !found.isEmpty else { return [] }
        let excerpt = try ReportExcerpt(server, grouping)
        func isMissing() -> ClickHouseError {
            .badAnswer(store: server.name, detail: "watched time is of a loop that is missing")
        }
        if stretches == .whole {
            try excerpt.excerpt.fill {
                try excerpt.fetchLoops(in: Self.loops(filter, of: stretches))
            }
            return try found.map { row in
                guard let loop = excerpt.loops[row.loop] else { throw isMissing() }
                return LoopExposure(
                    run: loop.run, loop: loop.name, threshold: .nanoseconds(loop.threshold_ns),
                    start: UnixTime(microseconds: row.values[0]),
                    watched: .nanoseconds(row.values[1]), busy: .nanoseconds(row.values[2]),
                    readyDelay: .nanoseconds(row.values[3]), microStallCount: Int(row.values[4]),
                    microStallTime: .nanoseconds(row.values[5]), lengths: row.lengths)
            }
        }
        let add = try excerpt.excerpt.connection.prepare(
            """
            insert into exposure (source, revision, loop, start_us, watched_ns, busy_ns, ready_delay_ns,
                micro_stall_count, micro_stall_ns, iteration_count, lengths)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        try excerpt.excerpt.fill {
            try excerpt.fetchLoops(in: Self.loops(filter, of: stretches))
            let source = try excerpt.excerpt.source(UniqueID((0, 1)))
            for (index, row) in found.enumerated() {
                guard let loop = excerpt.excerpt.loops[row.loop] else { throw isMissing() }
                let values = row.values
                try add.run(
                    source, Int64(index), loop, values[0], values[1], values[2], values[3],
                    values[4],
                    values[5], values[6], row.lengths.encoded)
            }
        }
        return try excerpt.excerpt.store.watchedLoops(filter, withLengths: withLengths)
    }

    // MARK: For rankings

    /// Of all time, as rows have it; of a part of it, from loops.
    package func watchedTimes(_ filter: ReportFilter) throws -> [WatchedLoopTime] {
        guard filter.since == nil, filter.until == nil else {
            return try watchedLoops(filter, withLengths: false).map(WatchedLoopTime.init)
        }
        var rows = try server.rows(Self.watchedTimeQuestion(filter), columnCount: 6)
        var times: [WatchedLoopTime] = []
        while try rows.step() {
            times.append(
                WatchedLoopTime(
                    app: try rows.text(), version: try rows.text(),
                    host: try rows.text(), loop: try rows.text(),
                    watched: .seconds(try rows.integer(as: Int64.self))
                        + .nanoseconds(try rows.integer(as: Int64.self))))
        }
        return times
    }

    /// A thousand loops of one name are watched for longer in a year than 64 bits have nanoseconds.
    private static func watchedTimeQuestion(_ filter: ReportFilter) -> ClickHouseQuery {
        """
        select app, version, host, loop_name, sum(intDiv(watched_ns, 1000000000)),
            sum(watched_ns % 1000000000)
        from exposure final where \(conditions(filter, of: .whole).sql)
        group by app, version, host, loop_name
        """
    }

    package func suppressedTotals(_ filter: ReportFilter) throws -> [SuppressedTotals] {
        var rows = try server.rows(Self.suppressionQuestion(server, filter), columnCount: 4)
        var totals: [SuppressedTotals] = []
        while try rows.step() {
            guard let reason = SuppressionReason(rawValue: try rows.integer(at: 1)) else {
                continue
            }
            totals.append(
                SuppressedTotals(
                    place: try rows.integer(at: 0), reason: reason,
                    // Less than nothing where stalls were taken back that another reason had counted.
                    count: Int(
                        min(max(try rows.integer(at: 2), -ValueLimits.count), ValueLimits.count)),
                    total: .nanoseconds(
                        min(
                            max(try rows.integer(at: 3), -ValueLimits.duration_ns),
                            ValueLimits.duration_ns))))
        }
        return totals
    }

    /// Of one process that several sources report, as copies do, the most counts. Only totals are kept: times and verdicts of
    /// the filter do not matter.
    private static func suppressionQuestion(
        _ server: ClickHouseServer, _ filter: ReportFilter
    ) -> ClickHouseQuery {
        var runs = ReportFilter()
        (runs.apps, runs.versions, runs.hosts) = (filter.apps, filter.versions, filter.hosts)
        var ofLoops: [ClickHouseQuery] = []
        if !filter.loops.isEmpty { ofLoops.append("name in \(list: filter.loops)") }
        if runs != ReportFilter() {
            let selected = ReportConditions(runs).sql
            ofLoops.append(
                "run in (select uuid from \(server.table("process_run")) where \(selected))")
        }
        let isSelected: ClickHouseQuery =
            ofLoops.isEmpty
            ? "1"
            : """
            loop in (select hash from \(server.table("loop")) where \(.joined(ofLoops, by: " and ")))
            """
        return """
            select place, reason, max(stall_count), max(total_ns) from suppression final
            where \(isSelected) group by loop, place, reason
            """
    }
}

extension LoopExposure {
    /// One for each loop of a process.
    fileprivate static func sums(_ exposures: [LoopExposure]) -> [LoopExposure] {
        struct Key: Hashable {
            var run: UniqueID
            var loop: String
            var threshold: Duration
        }
        var sums: [Key: LoopExposure] = [:]
        for exposure in exposures {
            let key = Key(
                run: exposure.run.id, loop: exposure.loop, threshold: exposure.threshold)
            guard var sum = sums[key] else {
                sums[key] = exposure
                continue
            }
            sum.start = min(sum.start, exposure.start)
            sum.watched += exposure.watched
            sum.busy += exposure.busy
            sum.readyDelay += exposure.readyDelay
            sum.microStallCount = sum.microStallCount.addingSaturated(exposure.microStallCount)
            sum.microStallTime += exposure.microStallTime
            sum.lengths.add(exposure.lengths)
            sums[key] = sum
        }
        return Array(sums.values)
    }
}
