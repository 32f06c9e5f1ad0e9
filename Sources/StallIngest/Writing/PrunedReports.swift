// Whether a line's report that is not here was here once: pruned reports do not come back, since roll-ups count them
// already, and one that never came is taken, however old it is.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Distinguishes lines of pruned reports from those that come for the first time. Works within the transaction of its
/// caller; after a rollback, `forget`.
final class PrunedReports {
    enum Answer {
        /// It was not here: no report of its source, or none of its host and day, was pruned.
        case isNew
        /// The position of its source covers it: roll-ups count it.
        case wasTaken
        /// Reports of its host and day were pruned, and it is not known which.
        case isUnclear
    }

    private struct HostDay: Hashable {
        var host: String
        var day: Int64
    }

    private let grouping: Grouping
    private let findPruned, findPosition, findHosts, anyDay, countCells, countReports: Statement
    private var known: [HostDay: Bool] = [:]
    /// Sources whose first rows came with this ingest: of them nothing can have been pruned.
    private var added: Set<Int64> = []

    init(_ connection: Connection, _ grouping: Grouping) throws {
        self.grouping = grouping
        findPruned = try connection.prepare(
            "select pruned_before_us from grouping where pruned_before_us is not null")
        findPosition = try connection.prepare(
            "select \(SourceWatermark.columns), line_count from source where id = ?")
        findHosts = try connection.prepare(
            "select hosts_from_day from grouping where hosts_from_day is not null")
        anyDay = try connection.prepare(
            "select exists (select 1 from host_rollup where day_count = 1 and first_day <= ?)")
        countCells = try connection.prepare(
            """
            select ifnull(sum(report_count), 0) from host_rollup join host on host.id = host_rollup.host
            where day_count = 1 and first_day = ? and host.name = ?
            """)
        countReports = try connection.prepare(
            """
            select count(*) from report_day join report on report.source = report_day.source
                and report.seq between report_day.first_seq and report_day.last_seq
            join loop on loop.id = report.loop join process_run on process_run.id = loop.run
            where report_day.day = ?1 and report.start_us >= ?2 and report.start_us < ?3
                and process_run.host = ?4 and report.signature is not null
            """)
    }

    /// Forgets state that other processes may have changed, or that a rollback undid.
    func forget() {
        known.removeAll()
        added.removeAll()
    }

    /// A source was added.
    func note(addedSource source: Int64) { added.insert(source) }

    /// - Parameter isAlone: No other source was once one with this one.
    /// - Returns: Nil for a report of a time of which nothing was pruned.
    func answer(
        for report: StallReport, _ origin: ReportOrigin, source: Int64, isAlone: Bool
    ) throws -> Answer? {
        guard let pruned = try findPruned.found(), report.start.microseconds < pruned else {
            return nil
        }
        if origin.store != LineImporter.nowhere {
            if added.contains(source) { return .isNew }
            try findPosition.bind(source)
            defer { findPosition.reset() }
            if try findPosition.step() {
                let position = try SourceWatermark(findPosition).position
                if position.covers(seq: origin.seq, revision: origin.revision) { return .wasTaken }
                // Then its position says of all its reports how far they were taken.
                if isAlone, try findPosition.integer() == 0 { return .isNew }
            }
        }
        let day = report.start.microseconds.day
        return try mayBeGone(host: report.run.host, day: day) ? .isUnclear : .isNew
    }

    /// Whether reports of a host and day were pruned, or it cannot be determined.
    func mayBeGone(host: String, day: Int64) throws -> Bool {
        let key = HostDay(host: host, day: day)
        let mayBeGone = try known[key] ?? lacksReports(key)
        known[key] = mayBeGone
        return mayBeGone
    }

    /// Whether roll-ups count more reports of a host and day than there are, or it cannot be determined.
    private func lacksReports(_ key: HostDay) throws -> Bool {
        // Roll-ups of days before the first may have been deleted.
        guard grouping.keepsTotals, let first = try findHosts.found(), key.day >= first,
            try anyDay.number(key.day) == 1
        else { return true }
        let start = key.day * .microsecondsOfDay
        let here = try countReports.number(
            key.day, start, start + .microsecondsOfDay, key.host)
        let counted = try countCells.number(key.day, key.host)
        return try counted + grouping.notedCount(host: key.host, day: key.day) > here
    }
}
