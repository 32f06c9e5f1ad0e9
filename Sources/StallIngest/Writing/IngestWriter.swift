// Writes another store's content as rows of the central one. Ingest gives it transactions.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Imports stores and lines. Works within the transaction of its caller; after a rollback, `forget`.
final class IngestWriter {
    let interner: Interner
    let reports: ReportRows
    let exposures: ExposureRows
    let exposureDays: ExposureDays
    let grouping: Grouping
    let same: SameReports
    let families: SourceFamilies
    let files: SourceFileRows
    let evidence: EvidenceWriter
    let positions: PushedPositions
    private let openReports: OpenReports
    private let singles: LineImporter
    private let rows: LineRows
    private let connection: Connection
    /// Prepared where files are to be deleted only.
    private var storedRows: StoredRows?
    private let allSources, setRevision, setPosition, noteLines: Statement
    private let findCounted, setLoss, contentVersion: Statement
    let here = ProcessLife.current()
    private var lastContentVersion: Int64?
    /// Another process had written when the present transaction began.
    private(set) var hasForgotten = false

    init(_ connection: Connection, _ grouping: Grouping) throws {
        self.grouping = grouping
        self.connection = connection
        interner = try Interner(connection)
        reports = try ReportRows(connection)
        openReports = try OpenReports(connection)
        exposures = try ExposureRows(connection)
        exposureDays = try ExposureDays(connection)
        same = try SameReports(connection, reports: reports, grouping: grouping)
        families = try SourceFamilies(connection, interner: interner)
        files = try SourceFileRows(connection)
        evidence = try EvidenceWriter(connection)
        positions = try PushedPositions(connection)
        singles = try LineImporter(
            connection, interner: interner, reports: reports, grouping: grouping, same: same,
            evidence: evidence)
        allSources = try connection.prepare(
            "select ifnull(origin, store), \(SourceWatermark.columns) from source")
        setRevision = try connection.prepare(
            """
            update source set revision = max(revision, ?), partial_seq = null, partial_revision = null
            where id = ?
            """)
        setPosition = try connection.prepare(
            "update source set partial_seq = ?, partial_revision = ? where id = ?")
        findCounted = try connection.prepare(
            "select \(CountedReport.columns) from report where source = ? and seq = ?")
        noteLines = try connection.prepare(
            "update source set line_count = max(line_count, 1) where id = ?")
        // Counts only grow; of two copies of a store, which may come as one source, the higher one stands.
        setLoss = try connection.prepare(
            """
            insert into loss (source, run, reason, report_count, revision) values (?, ?, ?, ?, ?)
            on conflict do update
            set report_count = max(report_count, excluded.report_count),
                revision = max(revision, excluded.revision)
            """)
        contentVersion = try connection.prepare("pragma data_version")
        rows = try LineRows(
            connection, interner: interner, grouping: grouping, exposures: exposures,
            days: exposureDays, families: families, setLoss: setLoss)
    }

    /// Forgets which rows there are when another process has written since.
    func notice() throws {
        let version = try contentVersion.number()
        hasForgotten = version != lastContentVersion
        if hasForgotten { try forget() }
        lastContentVersion = version
        // The rules may be others than last time; mostly they are the same.
        try grouping.bringUpToDate()
    }

    /// Forgets which rows there are: after a rollback of all.
    func forget() throws {
        interner.forget()
        evidence.forget()
        singles.forget()
        rows.forget()
        same.forget()
        try grouping.forget()
    }

    /// The state that the rollback of a file returns to.
    var mark: Int { grouping.mark }
    func rollBack(to mark: Int) throws {
        interner.forget()
        evidence.forget()
        singles.forget()
        rows.forget()
        same.forget()
        try grouping.rollBack(to: mark)
    }

    /// Writes the noted rows that are no reports.
    func flushRows() throws { try rows.flush() }

    /// Writes the noted changes: the last step before a commit.
    func flush() throws {
        try flushRows()
        try grouping.flush()
    }

    /// Imports the losses that a source counted.
    ///
    /// - Parameter run: A run's number in the central store, by its number in the incoming one.
    func importLosses(
        of source: IncomingStore.Source, in incoming: IncomingStore, after revision: Int64,
        target: Int64, run: (Int64) throws -> Int64
    ) throws {
        for loss in try incoming.rows().losses(ofSource: source.id, after: revision) {
            try setLoss.run(
                target, run(loss.run), Int64(loss.reason.rawValue), loss.count, loss.revision)
        }
    }

    /// Notes that all of a source was imported.
    func settle(_ target: Int64, at revision: Int64) throws {
        try setRevision.run(revision, target)
    }

    /// Notes how far a source was imported whose rest comes in another transaction.
    func note(_ position: SourcePosition, of target: Int64) throws {
        try setPosition.run(position.seq, position.revision, target)
    }

    /// Notes that some of a source's reports came as lines.
    func noteLines(of target: Int64) throws { try noteLines.run(target) }

    /// How far each store was imported; of several copies of one, the lowest.
    func watermarks() throws -> [UniqueID: SourceWatermark] {
        var known: [UniqueID: SourceWatermark] = [:]
        while try allSources.step() {
            let store = try allSources.uniqueID()
            let watermark = try SourceWatermark(allSources)
            known[store] =
                known[store].map {
                    SourceWatermark(revision: min($0.revision, watermark.revision))
                } ?? watermark
        }
        return known
    }

    /// Takes a row that comes on its own.
    ///
    /// - Parameter isCounted: No position of its source covers it.
    /// - Returns: Nil where the store has it as it is, or is to have it no more.
    /// - Throws: `LineFault` for a row that cannot be taken.
    func take(_ row: PortableRow, isCounted: Bool = true) throws -> RowOutcome? {
        try row.checkLimits()
        switch row {
        case .report(let report): return try singles.take(report, isCounted: isCounted)
        case .exposure(let row):
            let source = try singles.source(row.store)
            return try rows.take(
                row, source: source, siblings: singles.siblings(of: row.store, source: source))
        case .suppression(let row): return try rows.take(row, source: singles.source(row.store))
        case .loss(let row): return try rows.take(row, source: singles.source(row.store))
        case .run(let row): return try rows.take(row)
        case .location(let row): return try rows.take(row, source: singles.source(row.store))
        case .watchedLoop(let row): return try rows.take(row, source: singles.source(row.store))
        case .unknown: return nil
        }
    }

    /// How many of these reports, which were imported, the central store does not have: before their file is deleted,
    /// each line is compared with the stored row.
    func missingCount(_ reports: [PortableReport]) throws -> Int {
        // The days and sources of reports are known once they are written.
        try flush()
        return try reports.count { try !singles.holds($0) }
    }

    /// How many of these rows of other kinds, which were taken, the central store does not have.
    func missingCount(_ rows: [PortableRow]) throws -> Int {
        try flush()
        return try rows.count { try !holds($0) }
    }

    private func holds(_ row: PortableRow) throws -> Bool {
        switch row {
        case .report(let report): return try singles.holds(report)
        case .exposure(let row):
            let source = try singles.source(row.store)
            return try rows.holds(
                row, source: source, siblings: singles.siblings(of: row.store, source: source))
        case .suppression(let row): return try rows.holds(row, source: singles.source(row.store))
        case .loss(let row): return try rows.holds(row, source: singles.source(row.store))
        case .run(let row): return try rows.holds(row)
        case .location(let row): return try rows.holds(row)
        case .watchedLoop(let row): return try rows.holds(row, source: singles.source(row.store))
        case .unknown: return false
        }
    }

    /// The incoming store's rows that the central store does not have, and should: before a file is deleted, its
    /// content is compared with the imported rows.
    func missingRows(_ incoming: IncomingStore) throws -> MissingRows {
        // The days and sources of reports are known once they are written.
        try flush()
        let stored =
            try storedRows
            ?? StoredRows(
                connection, interner: interner, families: families, reports: reports,
                exposures: exposures, pruned: singles.pruned)
        storedRows = stored
        return try stored.missing(of: incoming)
    }

    /// Makes hangs of our open reports whose process is gone, or that are hangs in the incoming store. A store without
    /// a report has no evidence of how it ended.
    ///
    /// - Returns: How many, and how many stay open.
    func closeReports(
        of target: Int64, _ source: IncomingStore.Source, _ incoming: IncomingStore
    ) throws -> (closed: Int, open: Int) {
        var (closed, open) = (0, 0)
        for report in try openReports.of(target) {
            let state = try incoming.rows().state(of: report, ofSource: source.id)
            // An agent leaves its last word beside its own store. Beside any other file is whatever its owner put there.
            let isOwn = state != nil && incoming.role == .agent
            // A process that recorded no end is gone when its own store, or this machine, has evidence of it.
            let end =
                (isOwn ? report.end(in: incoming.path, here) : nil)
                ?? (state == .hang ? .ofKilledProcess : nil)
            guard let end else {
                open += 1
                continue
            }
            let before = try counted(report.seq, of: target)
            try openReports.close(report.seq, of: target, as: end, revision: nil)
            try reports.renewChecksum(source: target, seq: report.seq)
            if let before, let after = try counted(report.seq, of: target) {
                try grouping.recount(before, as: after)
            }
            closed += 1
        }
        return (closed, open)
    }

    private func counted(_ seq: Int64, of source: Int64) throws -> CountedReport? {
        try findCounted.bind(source, seq)
        defer { findCounted.reset() }
        return try findCounted.step() ? CountedReport(findCounted) : nil
    }
}
