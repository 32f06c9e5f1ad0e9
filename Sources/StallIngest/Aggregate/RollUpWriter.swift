// Keeps roll-ups in step with the reports: the changes by a batch of reports are noted as they come, and folded into
// the rows just before the batch commits. A file that is rolled back takes its notes with it.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Notes changes, and writes them. Works within the transaction of its caller.
final class RollUpWriter {
    private let rows: RollUpRows
    private let connection: Connection
    private let table: RollUpTable
    private var changes: [Change] = []
    private var days: [DaySource: ClosedRange<Int64>] = [:]
    /// Otherwise only the days are written.
    var keepsTotals = true

    /// A report that was added to a bucket or removed from it.
    private struct Change {
        var cell: RollUpCell
        var entry: RollUpEntry
        var isRemoved: Bool
    }
    private struct DaySource: Hashable {
        var day: Int64
        var source: Int64
    }

    init(_ connection: Connection, _ table: RollUpTable = .groups) throws {
        self.connection = connection
        self.table = table
        rows = try RollUpRows(connection, table)
    }

    /// Deletes the buckets of days from one on, and all of 32 days.
    func delete(from first: Int64) throws {
        try connection.prepare(
            "delete from \(table.name) where day_count = 1 and first_day >= ?"
        ).run(first)
        try deleteLong()
    }

    /// Deletes the buckets of days before one, and adds the others up again.
    func delete(before day: Int64) throws {
        try connection.prepare("delete from \(table.name) where day_count = 1 and first_day < ?")
            .run(day)
        try deleteLong()
        try addUpLong()
    }

    private func deleteLong() throws {
        try connection.prepare("delete from \(table.name) where day_count = ?")
            .run(RollUpCell.longDays)
    }

    /// How many changes are noted: the state that `rollBack(to:)` returns to.
    var mark: Int { changes.count }

    /// How many more reports of a day are noted than are in the rows.
    func notedCount(day: Int64, signature: Int64) -> Int64 {
        changes.reduce(0) { sum, change in
            guard change.cell.day == day, change.cell.signature == signature else { return sum }
            return sum + (change.isRemoved ? -1 : 1)
        }
    }

    /// Forgets the changes that were noted after the mark.
    func rollBack(to mark: Int) { changes.removeLast(changes.count - mark) }

    func forget() {
        changes.removeAll(keepingCapacity: true)
        days.removeAll(keepingCapacity: true)
    }

    func add(_ entry: RollUpEntry, dimension: Int64, signature: Int64) {
        let cell = RollUpCell(day: entry.start_us.day, dimension: dimension, signature: signature)
        changes.append(Change(cell: cell, entry: entry, isRemoved: false))
    }

    /// Notes when a report began, so that it is found by that. Reports that are added need not be
    /// noted.
    func noteDay(of entry: RollUpEntry) {
        let key = DaySource(day: entry.start_us.day, source: entry.source)
        let known = days[key] ?? entry.seq...entry.seq
        days[key] = min(known.lowerBound, entry.seq)...max(known.upperBound, entry.seq)
    }

    func remove(_ entry: RollUpEntry, dimension: Int64, signature: Int64) {
        let cell = RollUpCell(day: entry.start_us.day, dimension: dimension, signature: signature)
        changes.append(Change(cell: cell, entry: entry, isRemoved: true))
    }

    /// Adds the buckets of one day up to those of 32 days, of which there are none.
    func addUpLong() throws {
        for day in try rows.longDays() {
            for (cell, totals) in try rows.longTotals(from: day) {
                try rows.write(totals, to: cell)
            }
        }
    }

    /// Writes the noted changes.
    ///
    /// - Parameter entries: Gives all reports of some days with their buckets: for the extremes of a bucket that lost
    ///   one. Nil for a day that some reports were pruned from; then the bucket keeps the extremes that it had.
    func flush(entries: (Int64) throws -> [(RollUpCell, RollUpEntry)]?) throws {
        if table == .groups {
            for change in changes where !change.isRemoved { noteDay(of: change.entry) }
        }
        for (key, numbers) in days {
            try rows.note(day: key.day, source: key.source, numbers)
        }
        days.removeAll(keepingCapacity: true)
        defer { changes.removeAll(keepingCapacity: true) }
        guard !changes.isEmpty, keepsTotals else { return }
        let stale = try fold()
        for (day, cells) in Dictionary(grouping: stale, by: \.day) {
            guard let entries = try entries(day) else { continue }
            let wanted = Set(cells)
            var sums: [RollUpCell: RollUpTotals] = [:]
            for (cell, entry) in entries where wanted.contains(cell) {
                sums[cell, default: RollUpTotals()].add(entry)
            }
            for cell in cells { try rows.write(sums[cell] ?? RollUpTotals(), to: cell) }
        }
        for index in changes.indices { changes[index].cell = changes[index].cell.long }
        for (day, cells) in Dictionary(grouping: try fold(), by: \.day) {
            let sums = try rows.longTotals(from: day)
            for cell in cells { try rows.write(sums[cell] ?? RollUpTotals(), to: cell) }
        }
    }

    /// Brings the row of each bucket up to date.
    ///
    /// - Returns: The buckets whose extremes may be those of reports that do not count there any more.
    private func fold() throws -> [RollUpCell] {
        changes.sort { $0.cell < $1.cell }
        var stale: [RollUpCell] = []
        var next = changes.startIndex
        while next < changes.endIndex {
            let cell = changes[next].cell
            let end = changes[next...].firstIndex { $0.cell != cell } ?? changes.endIndex
            defer { next = end }
            var totals = try rows.totals(cell)
            let isExact = totals.apply(changes[next..<end].lazy.map { ($0.entry, $0.isRemoved) })
            try rows.write(totals, to: cell)
            if !isExact { stale.append(cell) }
        }
        return stale
    }
}
