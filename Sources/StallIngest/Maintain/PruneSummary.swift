// Deletes reports that are too old or too many from a central store.

internal import StallArchive
package import StallModel
package import StallQuery
package import StallStore

/// The results of `pruneStore`.
package struct PruneSummary: Hashable, Sendable {
    package var deletedCount: Int
    /// The file's size with its log.
    package var bytesBefore: Int64
    package var bytesAfter: Int64

    package init(deletedCount: Int, bytesBefore: Int64, bytesAfter: Int64) {
        self.deletedCount = deletedCount
        self.bytesBefore = bytesBefore
        self.bytesAfter = bytesAfter
    }
}

/// The reports and roll-ups of a central store to keep.
package struct Retention: Hashable, Sendable {
    /// Reports that started before it go.
    package var reportsSince: UnixTime?
    /// The oldest reports go until the file is no larger.
    package var bytes: Int64?
    /// Roll-ups of days before it go, with the reports that they were made from and the watched time of those days.
    package var rollUpsSince: UnixTime?

    package init(
        reportsSince: UnixTime? = nil, bytes: Int64? = nil, rollUpsSince: UnixTime? = nil
    ) {
        self.reportsSince = reportsSince
        self.bytes = bytes
        self.rollUpsSince = rollUpsSince
    }

    /// Reports of days before the one that a time is in go. Days are in UTC, as those of roll-ups.
    package init(daysSince time: UnixTime) {
        self.init(
            reportsSince: UnixTime(
                microseconds: time.microseconds.day * Int64.microsecondsOfDay))
    }
}

extension Ingest {
    /// Whether there are reports that pruning would delete.
    func hasReports(before time: UnixTime?) throws(StoreError) -> Bool {
        guard let time else { return false }
        let connection = file.connection
        return try StoreError.catching(path: file.path) {
            try connection.prepare(
                """
                select exists (
                    select 1 from report_day join report on report.source = report_day.source
                        and report.seq between report_day.first_seq and report_day.last_seq
                    where report_day.day <= ? and report.start_us < ? and report.state <> 0)
                """
            ).number(time.microseconds.day, time.microseconds) == 1
        }
    }
}

/// Deletes the oldest reports of a central store, with all that no other report needs, and shrinks the file. Their
/// roll-ups stay.
///
/// Deleted reports do not come back: `ingest` remembers how far it has imported each source. Open reports stay.
///
/// - Parameter grouper: Groups the reports first where that is not done yet.
package func pruneStore(
    path: String, keeping retention: Retention, grouper: any ReportGrouper
) throws(StoreError) -> PruneSummary {
    guard FileFacts(path) != nil else { throw .missing(path: path) }
    let file = try StoreFile.openForWriting(
        path: path, role: .central, followsLinks: true, wait: .seconds(60))
    func size() -> Int64 { (FileFacts(path)?.size ?? 0) + (FileFacts(path + "-wal")?.size ?? 0) }
    var summary = PruneSummary(deletedCount: 0, bytesBefore: size(), bytesAfter: 0)
    let connection = file.connection
    try connection.execute("pragma temp_store = memory; pragma secure_delete = off")
    summary.deletedCount = try connection.transaction(.immediate) {
        let grouping = try Grouping(connection, grouper)
        try grouping.bringUpToDate()
        let count = try deleteReports(connection, retention)
        if let time = retention.rollUpsSince {
            try grouping.deleteRollUps(before: time)
            // Roll-ups go by whole days, and rates need both.
            let day = time.microseconds.day
            try Eviction(connection).deleteExposure(
                before: UnixTime(microseconds: day * Int64.microsecondsOfDay))
            try connection.prepare("delete from exposure_day where day < ?").run(day)
        }
        try Eviction(connection).collect(
            runsBefore: retention.reportsSince ?? UnixTime(microseconds: .min))
        try SourceFileRows.forgetMissing(connection)
        return count
    }
    if summary.deletedCount > 0 { try returnFreePages(connection) }
    try file.close()
    summary.bytesAfter = size()
    return summary
}

/// Returns the free pages of a store to the file system, some megabytes per transaction: other processes read and write
/// in between.
///
/// A store that an older stallwatch made is rebuilt once, on the disk and not in memory, since only that makes its
/// pages movable. Where there is no room for it, its free pages stay, and are used again.
private func returnFreePages(_ connection: Connection) throws(StoreError) {
    func number(_ name: String) throws(StoreError) -> Int64 {
        try connection.prepare("pragma \(name)").number()
    }
    guard try number("auto_vacuum") == incrementalVacuum else {
        try connection.execute("pragma temp_store = file")
        do { try connection.execute("vacuum") } catch StoreError.full {}
        return
    }
    var free = try number("freelist_count")
    while free > 0 {
        try connection.execute("pragma incremental_vacuum(\(pagesPerStep))")
        let rest = try number("freelist_count")
        guard rest < free else { return }
        free = rest
    }
}

/// SQLite's number of `auto_vacuum = incremental`.
private let incrementalVacuum: Int64 = 2
private let pagesPerStep = 2_000

/// Deletes rows that are not kept, and notes in the store since when its reports are complete.
///
/// - Returns: How many reports there were.
private func deleteReports(_ connection: Connection, _ retention: Retention) throws -> Int {
    let eviction = Eviction(connection)
    let newest = try connection.prepare(
        "select max(start_us) from report where state <> 0"
    ).first().value
    let last = try connection.prepare("select max(start_us) from report").first().value
    var count = 0
    // Reports never outlive the roll-ups that count them.
    var boundary = [retention.reportsSince, retention.rollUpsSince].compactMap(\.self).max()
    if let boundary { count += try eviction.delete(before: boundary) }
    if let bytes = retention.bytes {
        try eviction.collect(runsBefore: boundary ?? UnixTime(microseconds: .min))
        let shrunk = try eviction.shrink(to: bytes, below: bytes, of: nil) {
            try eviction.collect(runsBefore: .now())
        }
        if shrunk > 0 {
            let oldest = try connection.prepare(
                "select start_us from report where state <> 0 order by start_us limit 1"
            ).found()
            boundary = UnixTime(microseconds: oldest ?? (newest ?? 0) + 1)
        }
        count += shrunk
    }
    // Open reports stay, also where nothing counts them any more.
    guard var boundary, count > 0 || retention.rollUpsSince != nil else { return count }
    // A time in the future must not limit future reports.
    boundary = min(boundary, UnixTime(microseconds: (last ?? boundary.microseconds - 1) + 1))
    try connection.prepare(
        """
        update grouping set pruned_before_us = max(ifnull(pruned_before_us, ?), ?)
        """
    ).run(boundary.microseconds, boundary.microseconds)
    return count
}
