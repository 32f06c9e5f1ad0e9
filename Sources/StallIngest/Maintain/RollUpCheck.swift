// Checks that the roll-ups of a central store equal the sums of its reports.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Adds the reports up once more and compares. Reads all of them; changes nothing.
struct RollUpCheck {
    private let connection: Connection
    private var expected: [RollUpCell: RollUpTotals] = [:]
    private var expectedOfHosts: [RollUpCell: RollUpTotals] = [:]
    private var days: [DaySource: ClosedRange<Int64>] = [:]

    private struct DaySource: Hashable {
        var day: Int64
        var source: Int64
    }

    init(_ connection: Connection) { self.connection = connection }

    /// Gives everything that is wrong to `complain`; nothing for a store without groups.
    mutating func run(_ complain: (String) -> Void) throws {
        guard let firstWholeDay = try connection.firstWholeDay() else { return }
        try addUpReports(from: firstWholeDay, complain)
        try compareCells(.groups, expected, from: firstWholeDay, complain)
        try compareLongCells(.groups, complain)
        if let first = try connection.hostsFromDay() {
            try compareCells(.hosts, expectedOfHosts, from: max(first, firstWholeDay), complain)
            try compareLongCells(.hosts, complain)
        }
        try compareDays(complain)
        try compareExposure(complain)
    }

    private func compareExposure(_ complain: (String) -> Void) throws {
        guard try connection.hasExposureDays else { return }
        var rest = try ExposureDays.sums(connection)
        let rows = try connection.prepare(
            "select \(ExposureTotals.columns), lengths from exposure_day")
        while try rows.step() {
            let cell = try ExposureCell(rows)
            let stored = try? ExposureTotals(rows, withLengths: true)
            if stored == nil { rows.skipRest() }
            let counted = rest.removeValue(forKey: cell)
            guard stored == nil || stored != counted else { continue }
            complain(
                "the watched time of loop \(cell.loop) on day \(cell.day) says "
                    + "\(stored?.sum.watched_ns ?? 0) ns; "
                    + "its stretches are \(counted?.sum.watched_ns ?? 0) ns")
        }
        for (cell, counted) in rest {
            complain(
                "\(counted.stretchCount) stretches of loop \(cell.loop) on day \(cell.day) "
                    + "are in no roll-up")
        }
    }

    private mutating func addUpReports(
        from firstWholeDay: Int64, _ complain: (String) -> Void
    ) throws {
        var dimensions: [RollUpDimension: Int64] = [:]
        let dimensionRows = try connection.prepare(
            "select \(RollUpDimension.columns), id from cohort")
        while try dimensionRows.step() {
            let dimension = try RollUpDimension(dimensionRows)
            dimensions[dimension] = try dimensionRows.integer()
        }
        var hosts: [String: Int64] = [:]
        let hostRows = try connection.prepare("select name, id from host")
        while try hostRows.step() {
            let name = hostRows.text()
            hosts[name] = try hostRows.integer()
        }
        let watched = try WatchedLoops(connection)
        let loops = try LoopFacts.all(connection, ReportFilter())
        let rows = try connection.prepare("select \(CountedReport.columns) from report")
        while try rows.step() {
            let report = try CountedReport(rows)
            let entry = report.entry
            let day = entry.start_us.day
            let key = DaySource(day: day, source: entry.source)
            let known = days[key] ?? entry.seq...entry.seq
            days[key] = min(known.lowerBound, entry.seq)...max(known.upperBound, entry.seq)
            guard let signature = report.signature else {
                complain("report \(entry.source)/\(entry.seq) has no group")
                continue
            }
            // Open reports stay where others were pruned, perhaps with the roll-ups.
            guard day >= firstWholeDay else { continue }
            guard let loop = loops[report.loop],
                let dimension = dimensions[
                    RollUpDimension(
                        app: loop.app, version: loop.version, buildID: loop.buildID,
                        loop: loop.name, verdict: report.verdict, cause: report.cause,
                        isWatched: watched.contains(report))]
            else {
                complain("report \(entry.source)/\(entry.seq) counts in no roll-up")
                continue
            }
            let cell = RollUpCell(day: day, dimension: dimension, signature: signature)
            expected[cell, default: RollUpTotals()].add(entry)
            let ofHost = RollUpCell(
                day: day, dimension: dimension, signature: hosts[loop.host] ?? 0)
            expectedOfHosts[ofHost, default: RollUpTotals()].add(entry)
        }
    }

    private func compareCells(
        _ table: RollUpTable, _ expected: [RollUpCell: RollUpTotals], from firstWholeDay: Int64,
        _ complain: (String) -> Void
    ) throws {
        var rest = expected
        let noun = table == .hosts ? "host" : "group"
        let rows = try connection.prepare(
            """
            select first_day, cohort, \(table.key), \(RollUpTotals.columns) from \(table.name)
            where day_count = 1
            """)
        while try rows.step() {
            let cell = RollUpCell(
                day: try rows.day(), dimension: try rows.integer(),
                signature: try rows.integer())
            var stored = RollUpTotals()
            try stored.add(rows, at: 3)
            let counted = rest.removeValue(forKey: cell) ?? RollUpTotals()
            // Reports of earlier days may have been pruned.
            let isRight =
                cell.day >= firstWholeDay ? stored == counted : stored.count >= counted.count
            if !stored.isPlausible {
                complain(
                    "the roll-up of \(noun) \(cell.signature) on day \(cell.day) says "
                        + "\(stored.total_ns) ns; \(stored.count) reports of \(stored.min_ns) to "
                        + "\(stored.max_ns) ns cannot last that")
                continue
            }
            if !isRight {
                complain(
                    "the roll-up of \(noun) \(cell.signature) on day \(cell.day) says "
                        + "\(stored.count) reports of \(stored.total_ns) ns; "
                        + "there are \(counted.count) of \(counted.total_ns) ns")
            }
        }
        for (cell, counted) in rest where cell.day >= firstWholeDay {
            complain(
                "\(counted.count) reports of \(noun) \(cell.signature) on day \(cell.day) "
                    + "are in no roll-up")
        }
    }

    private func compareLongCells(_ table: RollUpTable, _ complain: (String) -> Void) throws {
        let reader = try RollUpRows(connection, table)
        let noun = table == .hosts ? "host" : "group"
        var sums: [RollUpCell: RollUpTotals] = [:]
        for day in try reader.longDays() {
            sums.merge(try reader.longTotals(from: day)) { $1 }
        }
        let rows = try connection.prepare(
            """
            select first_day, cohort, \(table.key), \(RollUpTotals.columns) from \(table.name)
            where day_count = 32
            """)
        while try rows.step() {
            let cell = RollUpCell(
                day: try rows.day(), dayCount: RollUpCell.longDays,
                dimension: try rows.integer(), signature: try rows.integer())
            var stored = RollUpTotals()
            try stored.add(rows, at: 3)
            if sums.removeValue(forKey: cell) != stored {
                complain(
                    "the roll-up of \(noun) \(cell.signature) over the days from \(cell.day) "
                        + "is not the sum of its days")
            }
        }
        for cell in sums.keys {
            complain("\(noun) \(cell.signature) has no roll-up over the days from \(cell.day)")
        }
    }

    private func compareDays(_ complain: (String) -> Void) throws {
        var rest = days
        let rows = try connection.prepare("select day, source, first_seq, last_seq from report_day")
        while try rows.step() {
            let key = DaySource(day: try rows.day(), source: try rows.integer())
            let (first, last) = try (rows.integer(), rows.integer())
            guard let range = rest[key], first <= range.lowerBound, last >= range.upperBound
            else { continue }
            rest[key] = nil
        }
        for key in rest.keys {
            complain("reports of source \(key.source) are not listed under day \(key.day)")
        }
    }
}
