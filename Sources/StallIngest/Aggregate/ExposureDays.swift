// Watched time by day and loop, kept in step with its stretches: in the transaction that adds or deletes stretches, their
// sums change too.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Adds up watched time by day. Works within the transaction of its caller, and holds nothing beyond `flush`.
final class ExposureDays {
    private let connection: Connection
    private let find, put, remove, findStretch: Statement
    private var added: [ExposureCell: ExposureTotals] = [:]
    /// Buckets with a stretch that another row replaced: they have to be added up from the stretches that remain.
    private var stale: Set<ExposureCell> = []

    init(_ connection: Connection) throws {
        self.connection = connection
        let key = "day = ? and source = ? and loop = ? and crosses_midnight = ?"
        find = try connection.prepare(
            "select \(ExposureTotals.columns), lengths from exposure_day where \(key)")
        put = try connection.prepare(
            """
            insert or replace into exposure_day (\(ExposureTotals.columns), lengths)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        remove = try connection.prepare("delete from exposure_day where \(key)")
        findStretch = try connection.prepare(
            """
            select \(ExposureRow.columns()) from exposure
            where source = ? and revision = ? and loop = ?
            """)
    }

    /// Notes a stretch that is about to be written.
    func note(_ stretch: ExposureRow, source: Int64) throws {
        let cell = ExposureCell(stretch, source: source)
        try findStretch.bind(source, stretch.revision, stretch.loop)
        if try findStretch.step() {
            defer { findStretch.reset() }
            let replaced = try? ExposureRow(findStretch)
            // Imported before, by a job that ended between two parts of a large store.
            if replaced == stretch { return }
            stale.insert(cell)
            if let replaced { stale.insert(ExposureCell(replaced, source: source)) }
        } else if added[cell]?.add(ExposureTotals(stretch)) == nil {
            added[cell] = ExposureTotals(stretch)
        }
    }

    /// Forgets the notes of a file that failed.
    func forget() { (added, stale) = ([:], []) }

    /// Writes the noted changes, behind the stretches themselves.
    func flush() throws {
        for cell in stale {
            added[cell] = nil
            var totals: ExposureTotals?
            try Self.forEachStretch(connection, ofSource: cell.source) { stretch, source in
                guard ExposureCell(stretch, source: source) == cell else { return }
                if totals?.add(ExposureTotals(stretch)) == nil { totals = ExposureTotals(stretch) }
            }
            try write(totals, to: cell)
        }
        for (cell, totals) in added {
            try find.bind(cell.day, cell.source, cell.loop, cell.crossesMidnight)
            var sum = totals
            if try find.step() { sum.add(try ExposureTotals(find, withLengths: true)) }
            find.reset()
            try write(sum, to: cell)
        }
        forget()
    }

    /// Adds up a store that an older program wrote.
    func bringUpToDate() throws {
        if try !connection.hasExposureDays { try rebuild() }
    }

    /// Adds up all stretches again.
    func rebuild() throws {
        forget()
        try connection.prepare("delete from exposure_day").run()
        for (cell, totals) in try Self.sums(connection) { try write(totals, to: cell) }
        try connection.prepare("update grouping set has_exposure_days = 1").run()
    }

    /// The stretches that there are, added up.
    static func sums(_ connection: Connection) throws -> [ExposureCell: ExposureTotals] {
        var sums: [ExposureCell: ExposureTotals] = [:]
        try forEachStretch(connection) { stretch, source in
            let cell = ExposureCell(stretch, source: source)
            if sums[cell]?.add(ExposureTotals(stretch)) == nil {
                sums[cell] = ExposureTotals(stretch)
            }
        }
        return sums
    }

    /// A row that cannot be read is left to `check`; all others count.
    private static func forEachStretch(
        _ connection: Connection, ofSource source: Int64? = nil,
        _ body: (ExposureRow, _ source: Int64) -> Void
    ) throws {
        let rows = try connection.prepare(
            """
            select source, \(ExposureRow.columns()) from exposure
            where \(source.map { "source = \($0)" } ?? "true")
            """)
        while try rows.step() {
            let source = try rows.integer()
            if let stretch = try? ExposureRow(rows) { body(stretch, source) }
        }
    }

    private func write(_ totals: ExposureTotals?, to cell: ExposureCell) throws {
        guard let totals else {
            return try remove.run(cell.day, cell.source, cell.loop, cell.crossesMidnight)
        }
        let sum = totals.sum
        try put.run(
            cell.day, cell.source, cell.loop, cell.crossesMidnight, totals.stretchCount,
            sum.start_us, totals.end_us, totals.revisions.lowerBound, totals.revisions.upperBound,
            sum.watched_ns, sum.busy_ns, sum.readyDelay_ns, sum.microStallCount, sum.microStall_ns,
            sum.lengths.encoded)
    }
}
