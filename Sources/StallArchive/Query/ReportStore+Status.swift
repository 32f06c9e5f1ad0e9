// The store in numbers. Of a central store roll-ups know nearly all of them; reports are only read of days that some
// were pruned from. An agent's store has a quota, and is read.

import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The store in numbers.
    ///
    /// **Cost:** in a central store it grows with groups and days, in an agent's with reports.
    package func status() throws(StoreError) -> StoreStatus {
        try answer { connection in
            func count(_ sql: String) throws -> Int {
                Int(try connection.prepare(sql).number())
            }
            func list(_ sql: String) throws -> [String] {
                let rows = try connection.prepare(sql)
                var list: [String] = []
                while try rows.step() { list.append(rows.text()) }
                return list
            }
            var status = StoreStatus(
                path: path, role: role, schemaVersion: file.schemaVersion,
                bytes: (FileFacts(path)?.size ?? 0) + (FileFacts(path + "-wal")?.size ?? 0))
            status.sourceCount = try count("select count(*) from source")
            status.partialSourceCount = try count(
                "select count(*) from source where partial_seq is not null")
            status.runCount = try count("select count(*) from process_run")
            status.stackCount = try count("select count(*) from stack")
            status.apps = try list("select distinct app from process_run order by app")
            status.hosts = try list("select distinct host from process_run order by host")
            status.watchedHosts = try connection.watchedHosts(at: .now())
            if let firstWholeDay = try connection.firstWholeDay() {
                try status.addCells(connection, firstWholeDay: firstWholeDay)
                try status.addReports(connection, before: firstWholeDay)
                // Two short indexes, of open reports and of hangs.
                let open = try count("select count(*) from report where state = 0")
                let hangs = try count("select count(*) from report where state = 2")
                let states: [StallState: Int] = [
                    .open: open, .hang: hangs, .ended: max(0, status.reportCount - open - hangs),
                ]
                status.reportsByState = states.filter { $0.value > 0 }
            } else {
                try status.addReports(connection)
            }
            let losses = try connection.prepare(
                // One process is in several sources where stores were copied, and each has its own counts. SQLite's own
                // sum fails where it leaves the range of a number.
                """
                select reason, total(most) from (
                    select reason, max(report_count) as most from loss group by run, reason)
                group by reason
                """)
            while try losses.step() {
                // A reason that this program does not know is for `check` to report.
                let (reason, count): (LossReason?, _) = (try? losses.value(), losses.double())
                if let reason { status.losses[reason] = Int(min(max(0, count), 9e18)) }
            }
            return status
        }
    }
}

extension StoreStatus {
    /// Adds the roll-ups of single days. From `firstWholeDay` on they count the existing reports; before, also those
    /// that were pruned.
    fileprivate mutating func addCells(_ connection: Connection, firstWholeDay: Int64) throws {
        var dimensions = KnownDimensions()
        try dimensions.load(connection, ReportFilter())
        var cells = try RollUpBucketCursor(
            connection, "report_count, total_ns, first_us, last_us",
            RollUpBucketSpan(dayCount: 1, days: .min..<(.max)), dimensions)
        var days: Set<Int64> = []
        while let index = try cells.next() {
            let (row, dimension) = (cells.row, dimensions[index])
            let (day, count) = (try row.day(at: 2), Int(try row.count(at: 3)))
            rollUpCount += 1
            rollUpReportCount.addSaturated(count)
            days.insert(day)
            if dimension.verdict == .stalled {
                noteLost(
                    try row.integer(at: 4), loop: dimension.loop, isWatched: dimension.isWatched)
            }
            guard day >= firstWholeDay else { continue }
            noteReports(
                count, dimension.verdict, first: try row.time_us(at: 5),
                last: try row.time_us(at: 6))
        }
        (rollUpDays, rollUpDayCount) = (days, days.count)
    }

    /// Adds the reports that began before a day.
    fileprivate mutating func addReports(_ connection: Connection, before day: Int64) throws {
        guard day > .min else { return }
        let rows = try connection.prepare(
            """
            select report.start_us, report.verdict
            from \(Connection.reportsByDay(Int64.min.day...day - 1))
            """)
        while try rows.step() {
            let start = try rows.time_us()
            guard start.day < day else {
                rows.skipRest()
                continue
            }
            noteReports(1, try rows.value(), first: start, last: start)
        }
    }

    /// Adds every report, where there are no roll-ups.
    fileprivate mutating func addReports(_ connection: Connection) throws {
        let loops = try LoopFacts.all(connection, ReportFilter())
        let rows = try connection.prepare(
            "select verdict, start_us, state, samples, loop, duration_ns, source from report")
        let watched = try WatchedLoops(connection)
        var samples = 0
        while try rows.step() {
            let (verdict, start): (StallVerdict, _) = (try rows.value(), try rows.time_us())
            noteReports(1, verdict, first: start, last: start)
            reportsByState[try rows.value(), default: 0] += 1
            samples += try rows.samples().count
            let (number, duration, source) = try (rows.integer(), rows.integer(), rows.integer())
            if verdict == .stalled, let loop = loops[number] {
                noteLost(
                    duration, loop: loop.name,
                    isWatched: watched.contains(source: source, loop: number))
            }
        }
        sampleCount = samples
    }

    private mutating func noteReports(
        _ count: Int, _ verdict: StallVerdict, first: Int64, last: Int64
    ) {
        let (first, last) = (UnixTime(microseconds: first), UnixTime(microseconds: last))
        reportCount.addSaturated(count)
        reportsByVerdict[verdict, default: 0].addSaturated(count)
        self.first = min(self.first ?? first, first)
        self.last = max(self.last ?? last, last)
    }

    private mutating func noteLost(_ total_ns: Int64, loop: String, isWatched: Bool) {
        if isWatched { watchedLostByLoop[loop, default: .zero] += .nanoseconds(total_ns) }
        lostByLoop[loop, default: .zero] += .nanoseconds(total_ns)
    }
}
