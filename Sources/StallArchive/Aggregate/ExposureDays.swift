// Watched time by day and loop, kept in step with its stretches: in the transaction that adds or deletes stretches, their
// sums change too.

internal import StallModel
internal import StallStore

/// The key by which stretches of watched time are added up.
struct ExposureCell: Hashable {
    /// The day that they began on, since 1970, UTC.
    var day: Int64
    var source: Int64
    var loop: Int64
    /// They end on a later day, so that a time range of whole days may divide them.
    var crossesMidnight: Bool

    init(_ stretch: ExposureRow, source: Int64) {
        day = stretch.start_us.day
        self.source = source
        loop = stretch.loop
        crossesMidnight = max(stretch.start_us, stretch.end_us - 1).day > day
    }

    /// - Parameter row: Of `ExposureTotals.columns`.
    init(_ row: Statement) throws(StoreError) {
        day = try row.day(at: 0)
        source = try row.integer(at: 1)
        loop = try row.integer(at: 2)
        crossesMidnight = try row.integer(at: 3) != 0
    }
}

/// The sums of one bucket.
struct ExposureTotals: Hashable {
    var stretchCount: Int64
    var end_us: Int64
    var revisions: ClosedRange<Int64>
    /// Begins where the first stretch does.
    var sum: ExposureRow

    /// The columns that `init(_:withLengths:)` reads, in its order; the first of them are those of `ExposureCell`.
    static let columns = """
        day, source, loop, crosses_midnight, stretch_count, start_us, end_us, first_revision,
        last_revision, watched_ns, busy_ns, ready_delay_ns, micro_stall_count, micro_stall_ns
        """

    init(_ stretch: ExposureRow) {
        stretchCount = 1
        end_us = stretch.end_us
        revisions = stretch.revision...stretch.revision
        sum = stretch
        sum.revision = 0
    }

    /// - Parameter withLengths: The row has the lengths behind the columns.
    init(_ row: Statement, withLengths: Bool) throws(StoreError) {
        row.go(to: 2)
        let loop = try row.integer()
        row.skip(1)
        stretchCount = try row.integer()
        let start = try row.time_us()
        end_us = try row.time_us()
        let first = try row.integer()
        revisions = first...max(first, try row.integer())
        sum = ExposureRow(
            revision: 0, loop: loop, start_us: start, watched_ns: try row.integer(),
            busy_ns: try row.integer(), readyDelay_ns: try row.integer(),
            microStallCount: try row.integer(), microStall_ns: try row.integer(),
            lengths: LengthHistogram())
        guard withLengths else { return }
        guard let lengths = LengthHistogram(encoded: row.blob()) else {
            throw row.damage("the iteration lengths of a day are not a histogram")
        }
        sum.lengths = lengths
    }

    mutating func add(_ other: ExposureTotals) {
        stretchCount = stretchCount.addingSaturated(other.stretchCount)
        end_us = max(end_us, other.end_us)
        revisions =
            min(
                revisions.lowerBound, other.revisions.lowerBound)...max(
                revisions.upperBound, other.revisions.upperBound)
        sum.add(other.sum)
    }
}

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

extension Connection {
    /// Whether the watched time of this store is added up by day.
    var hasExposureDays: Bool {
        get throws(StoreError) {
            try prepare("select has_exposure_days from grouping").first() == .value(1)
        }
    }
}
