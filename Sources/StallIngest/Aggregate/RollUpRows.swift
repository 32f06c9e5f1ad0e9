// Reads and writes roll-ups and the days of reports, row by row.

internal import StallArchive
internal import StallModel
internal import StallStore

/// The rows of `rollup` or `host_rollup`, and of `report_day`. Works within the transaction of its caller.
struct RollUpRows {
    private let connection: Connection
    private let table: RollUpTable
    private let find, put, remove, findDays: Statement
    private let widen: Statement

    init(_ connection: Connection, _ table: RollUpTable = .groups) throws {
        self.connection = connection
        self.table = table
        let key = "day_count = ? and first_day = ? and cohort = ? and \(table.key) = ?"
        find = try connection.prepare(
            "select \(RollUpTotals.columns) from \(table.name) where \(key)")
        put = try connection.prepare(
            """
            insert or replace into \(table.name)
                (day_count, first_day, cohort, \(table.key), \(RollUpTotals.columns))
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        remove = try connection.prepare("delete from \(table.name) where \(key)")
        findDays = try connection.prepare(
            """
            select cohort, \(table.key), \(RollUpTotals.columns) from \(table.name)
            where day_count = 1 and first_day >= ? and first_day < ?
            """)
        widen = try connection.prepare(
            """
            insert into report_day (day, source, first_seq, last_seq) values (?, ?, ?, ?)
            on conflict do update set first_seq = min(first_seq, excluded.first_seq),
                last_seq = max(last_seq, excluded.last_seq)
            where excluded.first_seq < first_seq or excluded.last_seq > last_seq
            """)
    }

    /// The totals of a bucket; empty ones when there is no row.
    func totals(_ cell: RollUpCell) throws -> RollUpTotals {
        try find.bind(cell.dayCount, cell.day, cell.dimension, cell.signature)
        guard try find.step() else { return RollUpTotals() }
        defer { find.reset() }
        var totals = RollUpTotals()
        try totals.add(find, at: 0)
        return totals
    }

    /// Writes the totals of a bucket, or deletes the row of a bucket without reports.
    func write(_ totals: RollUpTotals, to cell: RollUpCell) throws {
        guard totals.count > 0 else {
            return try remove.run(cell.dayCount, cell.day, cell.dimension, cell.signature)
        }
        try put.run(
            cell.dayCount, cell.day, cell.dimension, cell.signature, totals.count, totals.total_ns,
            totals.cpu_ns, totals.min_ns, totals.max_ns, totals.maxSource, totals.maxSeq,
            totals.first_us, totals.last_us, totals.histogram.encoded, totals.delayed_ns)
    }

    /// The buckets of one day each in the 32 days from `longDay`, added up by dimension row and signature.
    func longTotals(from longDay: Int64) throws -> [RollUpCell: RollUpTotals] {
        var sums: [RollUpCell: RollUpTotals] = [:]
        try findDays.bind(longDay, longDay + RollUpCell.longDays)
        while try findDays.step() {
            let cell = RollUpCell(
                day: longDay, dayCount: RollUpCell.longDays, dimension: try findDays.integer(),
                signature: try findDays.integer())
            try sums[cell, default: RollUpTotals()].add(findDays, at: 2)
        }
        return sums
    }

    /// The first days of the buckets of 32 days, derived from the buckets of one day.
    func longDays() throws -> Set<Int64> {
        var days: Set<Int64> = []
        let rows = try connection.prepare(
            "select distinct first_day from \(table.name) where day_count = 1")
        while try rows.step() { days.insert(RollUpCell.longDay(try rows.day())) }
        return days
    }

    /// Notes that reports of these numbers began on a day.
    func note(day: Int64, source: Int64, _ numbers: ClosedRange<Int64>) throws {
        try widen.run(day, source, numbers.lowerBound, numbers.upperBound)
    }
}
