// The watched time of a store, in which no report was made.

package import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The watched time of the loops that the filter selects, by stretches, oldest first. Its verdicts do not matter.
    /// The part of a stretch that is inside of the filter's time, with that part of all its numbers.
    package func exposure(_ filter: ReportFilter) throws(StoreError) -> [LoopExposure] {
        try answer { connection in
            let condition = Condition(filter, table: "exposure")
            let rows = try connection.prepare(
                """
                select \(ProcessRun.columns), loop.name, loop.threshold_ns,
                    \(ExposureRow.columns())
                from exposure join loop on loop.id = exposure.loop
                join process_run on process_run.id = loop.run
                where \(condition.sql) order by exposure.start_us
                """)
            try condition.bind(to: rows)
            var stretches: [LoopExposure] = []
            while try rows.step() {
                let (run, loop) = (try ProcessRun(rows), rows.text())
                let threshold = try rows.duration()
                guard
                    let row = try? ExposureRow(rows).part(from: filter.since, until: filter.until)
                else {
                    rows.skipRest()
                    continue
                }
                stretches.append(LoopExposure(row, run: run, loop: loop, threshold: threshold))
            }
            return stretches
        }
    }

    /// The sums of the stretches of each loop that the filter selects, unordered.
    ///
    /// **Cost:** time grows with loops and days in a central store, with the stretches in an agent's, and where the
    /// filter's time begins or ends within a day, with the stretches of that day. Memory grows with the loops.
    ///
    /// - Parameter withLengths: Also add up how long iterations took, which is most of the work.
    package func watchedLoops(
        _ filter: ReportFilter, withLengths: Bool
    ) throws(StoreError) -> [LoopExposure] {
        try answer { connection in
            let sums = try ExposureQuery(connection, filter, withLengths: withLengths).sums()
            let loops = try connection.prepare(
                """
                select \(ProcessRun.columns), loop.name, loop.threshold_ns
                from loop join process_run on process_run.id = loop.run where loop.id = ?
                """)
            return try sums.values.map { sum in
                try loops.bind(sum.loop)
                guard try loops.step() else { throw loops.damage("watched time of no loop") }
                defer { loops.reset() }
                return LoopExposure(
                    sum, run: try ProcessRun(loops), loop: loops.text(),
                    threshold: try loops.duration())
            }
        }
    }

    /// The suppressed stalls, by loop, location and reason; most of all first. The filter's times and verdicts do not
    /// matter: only totals are kept. Of one process that several sources report, as copies do, the most counts.
    package func suppressedStalls(_ filter: ReportFilter) throws(StoreError) -> [SuppressedStalls] {
        try answer { connection in
            var filter = filter
            (filter.since, filter.until) = (nil, nil)
            let condition = Condition(filter, table: "suppression")
            let rows = try connection.prepare(
                """
                select \(ProcessRun.columns), loop.name, suppression.place, suppression.reason,
                    max(suppression.stall_count), max(suppression.total_ns)
                from suppression join loop on loop.id = suppression.loop
                join process_run on process_run.id = loop.run
                where \(condition.sql)
                group by suppression.loop, suppression.place, suppression.reason order by max(suppression.stall_count) desc
                """)
            try condition.bind(to: rows)
            var stalls: [SuppressedStalls] = []
            while try rows.step() {
                let (run, loop) = (try ProcessRun(rows), rows.text())
                let place = try rows.integer()
                guard let reason: SuppressionReason = try? rows.value() else {
                    rows.skipRest()
                    continue
                }
                stalls.append(
                    SuppressedStalls(
                        run: run, loop: loop, place: place, reason: reason,
                        // Less than nothing where stalls were taken back that another reason had counted.
                        count: Int(
                            min(max(try rows.integer(), -ValueLimits.count), ValueLimits.count)
                        ),
                        total: .nanoseconds(
                            min(
                                max(try rows.integer(), -ValueLimits.duration_ns),
                                ValueLimits.duration_ns))))
            }
            return stalls
        }
    }

    package func suppressedTotals(_ filter: ReportFilter) throws -> [SuppressedTotals] {
        try suppressedStalls(filter).map(SuppressedTotals.init)
    }
}

extension LoopExposure {
    fileprivate init(_ row: ExposureRow, run: ProcessRun, loop: String, threshold: Duration) {
        self.init(
            run: run, loop: loop, threshold: threshold, start: UnixTime(microseconds: row.start_us),
            watched: .nanoseconds(row.watched_ns), busy: .nanoseconds(row.busy_ns),
            readyDelay: .nanoseconds(row.readyDelay_ns), microStallCount: Int(row.microStallCount),
            microStallTime: .nanoseconds(row.microStall_ns), lengths: row.lengths)
    }
}
