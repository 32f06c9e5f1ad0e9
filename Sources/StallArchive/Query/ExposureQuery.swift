// Adds up the watched time of each loop in a time range: from days where they are inside of it, and from single
// stretches where its ends are.

internal import StallModel
internal import StallQuery
internal import StallStore

/// One question for watched time, on one snapshot of a store.
struct ExposureQuery {
    private let connection: Connection
    private let filter: ReportFilter
    private let withLengths: Bool

    init(_ connection: Connection, _ filter: ReportFilter, withLengths: Bool) {
        self.connection = connection
        self.filter = filter
        self.withLengths = withLengths
    }

    /// The sums by the numbers of the loops' rows.
    func sums() throws -> [Int64: ExposureRow] {
        var sums: [Int64: ExposureRow] = [:]
        func add(_ row: ExposureRow) { if sums[row.loop]?.add(row) == nil { sums[row.loop] = row } }
        if try connection.hasExposureDays {
            try addDays(add)
        } else {
            try addStretches(Condition(filter, table: "exposure"), add)
        }
        return sums
    }

    private func addDays(_ add: (ExposureRow) -> Void) throws {
        var ofLoops = filter
        (ofLoops.since, ofLoops.until) = (nil, nil)
        var condition = Condition(ofLoops, table: "exposure_day")
        if let since = filter.since { condition.add("end_us > ?", since.microseconds) }
        if let until = filter.until { condition.add("start_us < ?", until.microseconds) }
        let rows = try connection.prepare(
            """
            select \(ExposureTotals.columns)\(withLengths ? ", lengths" : "") from exposure_day
            where \(condition.sql)
            """)
        try condition.bind(to: rows)
        var divided: [(cell: ExposureCell, revisions: ClosedRange<Int64>)] = []
        while try rows.step() {
            let totals = try ExposureTotals(rows, withLengths: withLengths)
            if isInside(totals) {
                add(totals.sum)
            } else {
                divided.append((try ExposureCell(rows), totals.revisions))
            }
        }
        for (cell, revisions) in divided {
            var condition = Condition(filter, table: "exposure")
            condition.add("exposure.source = ?", cell.source)
            condition.add("exposure.revision >= ?", revisions.lowerBound)
            condition.add("exposure.revision <= ?", revisions.upperBound)
            condition.add("exposure.loop = ?", cell.loop)
            try addStretches(condition, of: cell, add)
        }
    }

    /// Whether the time range has all of the bucket's stretches, and none of them in part.
    private func isInside(_ totals: ExposureTotals) -> Bool {
        totals.sum.start_us > filter.since?.microseconds ?? .min
            && totals.end_us < filter.until?.microseconds ?? .max
    }

    /// - Parameter cell: Nil for all stretches that meet the condition.
    private func addStretches(
        _ condition: Condition, of cell: ExposureCell? = nil, _ add: (ExposureRow) -> Void
    ) throws {
        let columns = ExposureRow.columns(lengths: withLengths)
        let rows = try connection.prepare(
            "select \(columns) from exposure where \(condition.sql)")
        try condition.bind(to: rows)
        while try rows.step() {
            // A row that cannot be read is left to `check`; all others count.
            guard let row = try? ExposureRow(rows) else {
                rows.skipRest()
                continue
            }
            guard cell == nil || cell == ExposureCell(row, source: cell!.source) else { continue }
            add(row.part(from: filter.since, until: filter.until))
        }
    }
}
