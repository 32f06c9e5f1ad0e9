// Writes what another store holds as rows of the central one. Ingest gives it transactions.

internal import StallModel
internal import StallStore

/// Takes over incoming stores. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class IngestWriter {
    private let interner: Interner
    private let reports: ReportRows
    private let openReports: OpenReports
    private let exposures: ExposureRows
    private let exposureDays: ExposureDays
    private let grouping: Grouping
    private let singles: LineImporter
    private let same: SameReports
    private let families: SourceFamilies
    private let allSources, setRevision, noteLines: Statement
    private let findCounted, setLoss, contentVersion: Statement
    private let here = ProcessLife.current()
    private var lastContentVersion: Int64?

    init(_ connection: Connection, _ grouping: Grouping) throws {
        self.grouping = grouping
        interner = try Interner(connection)
        reports = try ReportRows(connection)
        openReports = try OpenReports(connection)
        exposures = try ExposureRows(connection)
        exposureDays = try ExposureDays(connection)
        same = try SameReports(connection, reports: reports, grouping: grouping)
        singles = try LineImporter(
            connection, interner: interner, reports: reports, grouping: grouping, same: same)
        families = try SourceFamilies(connection)
        allSources = try connection.prepare(
            "select ifnull(origin, store), min(revision) from source group by 1")
        setRevision = try connection.prepare("update source set revision = ? where id = ?")
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
    }

    /// Forgets which rows there are when another process has written since.
    func notice() throws {
        let version = try contentVersion.number()
        if version != lastContentVersion { try forget() }
        lastContentVersion = version
        // The rules may be others than last time; mostly they are the same.
        try grouping.bringUpToDate()
    }

    /// Forgets which rows there are: after a rollback of all.
    func forget() throws {
        interner.forget()
        singles.forget()
        same.forget()
        try grouping.forget()
    }

    /// What the rollback of a file returns to.
    func mark(before incoming: IncomingStore) throws -> Int {
        // Of a large file roll-ups are written before its end, and those of others must not go with it.
        if incoming.isLarge { try grouping.flush() }
        return grouping.mark
    }
    func rollBack(to mark: Int) throws {
        interner.forget()
        singles.forget()
        same.forget()
        try grouping.rollBack(to: mark)
    }

    /// Writes what was noted: the last thing before a commit.
    func flush() throws { try grouping.flush() }

    /// Takes what is new in the incoming store.
    ///
    /// - Parameter isStrict: Compares every number that both have first: after `sharedIdentity`.
    func take(_ incoming: IncomingStore, isStrict: Bool) throws -> IngestFileResult.Outcome {
        guard !incoming.sources.isEmpty else {
            throw incoming.damage("the store's identity is missing")
        }
        var (added, changed, hasNews) = (0, 0, false)
        let transfer = RowImporter(
            incoming, interner: interner, reports: reports, grouping: grouping, same: same)
        for source in incoming.sources {
            let place = try families.place(of: source, in: incoming, isStrict: isStrict)
            let (id, known) = (place.target.id, place.target.revision)
            transfer.targets[source.id] = id
            if source.revision > known || source.hasLines {
                transfer.sibling =
                    place.siblings.isEmpty
                    ? nil
                    : { [families] in try families.holder(among: place.siblings, seq: $0, id: $1) }
                // Before the reports: those of watched loops then count as such at once.
                var watched = try incoming.exposure().take(
                    ofSource: source.id, after: known, to: exposures, exposureDays, target: id,
                    known: source.revision, loop: transfer.loop,
                    isKnown: {
                        try self.families.holdsExposure(place.siblings, revision: $0, start_us: $1)
                    })
                watched.formUnion(
                    try incoming.notedWatchedLoops(ofSource: source.id).map(transfer.loop))
                try grouping.noteWatched(watched, source: id)
                let taken = try transfer.importReports(of: source, after: known, target: id)
                (added, changed) = (added + taken.added, changed + taken.changed)
                if source.hasLines { try noteLines.run(id) }
                for loss in try incoming.rows().losses(ofSource: source.id, after: known) {
                    try setLoss.run(
                        id, transfer.run(loss.run), Int64(loss.reason.rawValue), loss.count,
                        source.revision)
                }
                // What it claims binds itself alone: how far it was taken says nothing of others of this name.
                if source.revision > known { try setRevision.run(source.revision, id) }
                // A central store keeps no revision of names; what is known already costs little.
                if incoming.role == .agent { try transfer.importNames(after: known, of: source.id) }
                hasNews = true
            }
            changed += try closeReports(of: id, source, incoming)
        }
        if incoming.role == .central, hasNews { try transfer.importNames(after: -1, of: nil) }
        return .taken(added: added, changed: changed)
    }

    /// The revision that each source was taken over at.
    func knownRevisions() throws -> [UniqueID: Int64] {
        var known: [UniqueID: Int64] = [:]
        while try allSources.step() {
            known[try allSources.uniqueID(at: 0)] = try allSources.integer(at: 1)
        }
        return known
    }

    /// Takes a report that comes on its own.
    func take(_ report: PortableReport) throws -> ReportRows.Outcome? { try singles.take(report) }

    /// How many of the incoming store's reports the central store does not have, and should: before a file goes, what
    /// it says it holds is compared with what was taken.
    func missingCount(_ incoming: IncomingStore) throws -> Int {
        var (missing, isFlushed) = (0, false)
        let pruned = try families.prunedBefore()
        for source in incoming.sources {
            let family = try families.branches(of: source.origin ?? source.store)
            try incoming.forEachReport(ofSource: source.id) { report in
                let isHere = try families.holds(family, seq: report.seq, id: report.id)
                // Which days have reports of which source is known once it is written.
                if !isHere, !isFlushed {
                    try flush()
                    isFlushed = true
                }
                if !isHere, report.start_us >= pruned ?? .min,
                    // The same report under another source counts once.
                    try !families.holdsAnywhere(report.id, start_us: report.start_us)
                {
                    missing += 1
                }
                return true
            }
        }
        return missing
    }

    /// Makes hangs of our open reports whose process is gone, or that are hangs in the incoming
    /// store.
    /// - Returns: How many.
    private func closeReports(
        of target: Int64, _ source: IncomingStore.Source, _ incoming: IncomingStore
    ) throws -> Int {
        var count = 0
        for report in try openReports.of(target) {
            // A process that left no word is gone when its own store, or this machine, says so.
            let isHang = try incoming.rows().isHang(seq: report.seq, ofSource: source.id)
            let end =
                report.end(in: incoming.path, here)
                ?? (isHang ? OpenStallEnd(state: .hang, ending: .killed) : nil)
            guard let end else { continue }
            let before = try counted(report.seq, of: target)
            try openReports.close(report.seq, of: target, as: end, revision: nil)
            try reports.renewChecksum(source: target, seq: report.seq)
            if let before, let after = try counted(report.seq, of: target) {
                try grouping.recount(before, as: after)
            }
            count += 1
        }
        return count
    }

    private func counted(_ seq: Int64, of source: Int64) throws -> CountedReport? {
        try findCounted.bind(source, seq)
        defer { findCounted.reset() }
        return try findCounted.step() ? CountedReport(findCounted, at: 0) : nil
    }
}
