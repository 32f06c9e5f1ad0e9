// Questions that a store answers without reading every report: its newest reports, one report by its id, and watched
// time.
// A central store knows which of its reports began on a day; an agent's is small enough to be read.

package import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The newest of the reports that the filter selects, without frames, the newest first.
    ///
    /// **Cost:** in a central store, the days that they are of.
    ///
    /// - Parameter signature: Only reports whose stored group has this hash; nil for all.
    package func newest(
        _ filter: ReportFilter, signature: Int64?, count: Int
    ) throws(StoreError) -> ReportSelection {
        try answer { connection in
            let reader = try SummaryReader(connection)
            var condition = Condition(filter, signature: signature)
            guard try connection.isGrouped else {
                return ReportSelection(
                    runs: reader.runs,
                    reports: try reader.newest(connection, from: "report", condition, count))
            }
            let day = Int64.microsecondsOfDay
            let days = try connection.prepare(
                """
                select distinct day from report_day where day >= ? and day <= ? order by day desc
                """)
            try days.bind(
                filter.since?.microseconds.day ?? .min, filter.until?.microseconds.day ?? .max)
            var reports: [ReportSummary] = []
            while reports.count < count, try days.step() {
                let begin = try days.day()
                condition = Condition(filter, signature: signature)
                condition.add("report.start_us >= ?", begin * day)
                condition.add("report.start_us < ?", (begin + 1) * day)
                reports += try reader.newest(
                    connection, from: Connection.reportsByDay(begin...begin), condition,
                    count - reports.count)
            }
            return ReportSelection(runs: reader.runs, reports: reports)
        }
    }

    /// The reports whose ids are not before the first nor after the last, at most a hundred.
    func reports(
        from first: UniqueID, through last: UniqueID
    ) throws(StoreError) -> [StallReport] {
        try answer { connection in
            let reader = try ReportReader(connection)
            // An id contains the time it was made, which is when the stall began unless another program made it.
            let days = first.made.microseconds.day...last.made.microseconds.day
            if days.count <= 32, try connection.isGrouped {
                let rows = try connection.prepare(
                    """
                    \(ReportReader.query) where (report.source, report.seq) in
                        (select report.source, report.seq from \(Connection.reportsByDay(days))
                        where report.id between ? and ?)
                    order by report.id limit 100
                    """)
                try rows.bind(first.bytes, last.bytes)
                let found = try reader.all(rows)
                if !found.isEmpty { return found }
            }
            let rows = try connection.prepare(
                "\(ReportReader.query) where report.id between ? and ? order by report.id limit 100"
            )
            try rows.bind(first.bytes, last.bytes)
            return try reader.all(rows)
        }
    }

    /// The loops that are known, with their processes, whether they have reports or not.
    package func loops() throws(StoreError) -> [(run: ProcessRun, name: String)] {
        try answer { connection in
            let reader = try SummaryReader(connection)
            return reader.loops.values.map { (reader.runs[$0.run], $0.name) }
        }
    }
}

/// The rules of a central store of any schema, also before a job migrates it. Nil where it has no groups.
package func storedRules(ofFile path: String) throws(StoreError) -> StoredRules? {
    let file = try StoreFile.openForReading(path: path, wait: .seconds(5), migrates: false)
    // The text came with this schema.
    if file.schemaVersion >= 20 { return try file.connection.storedRules() }
    let table = try file.connection.prepare(
        "select count(*) from sqlite_schema where name = 'grouping'")
    guard try table.number() > 0 else { return nil }
    return try file.connection.prepare("select rules_hash from grouping").found().map {
        StoredRules(hash: $0, text: nil)
    }
}

extension Connection {
    /// Whether the store's reports are grouped, and their days known.
    var isGrouped: Bool {
        get throws(StoreError) {
            try prepare("select count(*) from grouping").number() == 1
        }
    }

    /// The rules that the store's groups were decided by; nil for a store without groups. Of a text that is too long the
    /// beginning, which is refused as rules: it is not the same as none.
    package func storedRules() throws(StoreError) -> StoredRules? {
        let state = try prepare(
            """
            select rules_hash, cast(
                substr(cast(rules_text as blob), 1, \(StoredRules.longestText + 1)) as text)
            from grouping
            """)
        guard try state.step() else { return nil }
        defer { state.reset() }
        return StoredRules(hash: try state.integer(at: 0), text: state.optionalText(at: 1))
    }

    /// The first day that roll-ups by host are complete from; nil for a store that has none.
    package func hostsFromDay() throws(StoreError) -> Int64? {
        let state = try prepare("select hosts_from_day from grouping")
        guard try state.step(), !state.isNull(at: 0) else { return nil }
        defer { state.reset() }
        // From the beginning of time on in a store of which no roll-up was deleted.
        return try state.integer(at: 0) == .min ? .min : state.day(at: 0)
    }

    package var hasHostRollUps: Bool {
        get throws(StoreError) { try hostsFromDay() != nil }
    }

    /// The first day of which no report was pruned, so that its buckets count the existing reports; nil for a store
    /// without groups.
    package func firstWholeDay() throws(StoreError) -> Int64? {
        let state = try prepare("select pruned_before_us from grouping")
        guard try state.step() else { return nil }
        defer { state.reset() }
        return state.optionalInteger().map { ($0 &- 1).day + 1 } ?? .min
    }

    /// The reports that may have begun in a filter's time, as a table of a query.
    func reports(_ filter: ReportFilter) throws(StoreError) -> String {
        guard filter.since != nil || filter.until != nil, try isGrouped else { return "report" }
        let since = (filter.since?.microseconds ?? .min).day
        let until = (filter.until?.microseconds ?? .max).day
        return Self.reportsByDay(since...max(since, until))
    }

    /// The reports that may have begun on these days since 1970, UTC, as a table of a query.
    static func reportsByDay(_ days: ClosedRange<Int64>) -> String {
        """
        (select source, min(first_seq) as first_seq, max(last_seq) as last_seq from report_day
            where day between \(days.lowerBound) and \(days.upperBound) group by source) as span
        join report on report.source = span.source
            and report.seq between span.first_seq and span.last_seq
        """
    }
}
