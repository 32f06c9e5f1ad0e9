// Writes what another store holds as rows of the central one. Ingest gives it transactions.

internal import StallModel

/// Takes over incoming stores. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class IngestWriter {
    private let interner: Interner
    private let reports: ReportRows
    private let openReports: OpenReports
    private let exposures: ExposureRows
    private let grouping: Grouping
    private let singles: ReportImport
    private let same: SameReports
    private let findSource, addSource, allSources, setRevision: Statement
    private let findLast, findCounted, setLoss, contentVersion: Statement
    private let here = ProcessLife.current()
    private var lastContentVersion: Int64?

    init(_ connection: Connection, _ grouping: Grouping) throws {
        self.grouping = grouping
        interner = try Interner(connection)
        reports = try ReportRows(connection)
        openReports = try OpenReports(connection)
        exposures = try ExposureRows(connection)
        same = try SameReports(connection, reports: reports, grouping: grouping)
        singles = try ReportImport(
            connection, interner: interner, reports: reports, grouping: grouping, same: same)
        findSource = try connection.prepare("select id, revision from source where store = ?")
        addSource = try connection.prepare("insert into source (store) values (?)")
        allSources = try connection.prepare("select store, revision from source")
        setRevision = try connection.prepare("update source set revision = ? where id = ?")
        findLast = try connection.prepare(
            "select seq, id from report where source = ? order by seq desc limit 1")
        findCounted = try connection.prepare(
            "select \(CountedReport.columns) from report where source = ? and seq = ?")
        setLoss = try connection.prepare(
            """
            insert into loss (source, run, reason, report_count, revision) values (?, ?, ?, ?, ?)
            on conflict do update
            set report_count = excluded.report_count, revision = excluded.revision
            """)
        contentVersion = try connection.prepare("pragma data_version")
    }

    /// Forgets which rows there are when another process has written since.
    func notice() throws {
        let version = try contentVersion.integer()
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
    func take(_ incoming: IncomingStore) throws -> IngestFileResult.Outcome {
        guard incoming.role == .central || incoming.sources.count == 1 else {
            throw incoming.damage("an agent's store of \(incoming.sources.count) identities")
        }
        var (added, changed, hasNews) = (0, 0, false)
        let transfer = StoreTransfer(
            incoming, interner: interner, reports: reports, grouping: grouping, same: same)
        for source in incoming.sources {
            let (id, known) = try centralSource(source.store)
            try refuseSharedIdentity(of: id, source, incoming)
            if source.revision > known {
                // Before the reports: those of watched loops then count as such at once.
                let watched = try incoming.exposure().take(
                    ofSource: source.id, after: known, to: exposures, target: id,
                    known: source.revision, loop: transfer.loop)
                try grouping.noteWatched(watched, source: id)
                let taken = try transfer.takeReports(of: source, after: known, target: id)
                (added, changed) = (added + taken.added, changed + taken.changed)
                for loss in try incoming.rows().losses(ofSource: source.id, after: known) {
                    try setLoss.run(
                        id, transfer.run(loss.run), Int64(loss.reason.rawValue), loss.count,
                        source.revision)
                }
                try setRevision.run(source.revision, id)
                // A central store keeps no revision of names; what is known already costs little.
                if incoming.role == .agent { try transfer.takeNames(after: known) }
                hasNews = true
            }
            changed += try closeReports(of: id, source, incoming)
        }
        if incoming.role == .central, hasNews { try transfer.takeNames(after: -1) }
        return .taken(added: added, changed: changed)
    }

    /// The revision that each source was taken over at.
    func knownRevisions() throws -> [UniqueID: Int64] {
        var known: [UniqueID: Int64] = [:]
        while try allSources.step() {
            known[try allSources.uniqueID(at: 0)] = allSources.integer(at: 1)
        }
        return known
    }

    /// Takes a report that comes on its own.
    func take(_ report: PortableReport) throws -> ReportRows.Outcome? { try singles.take(report) }

    private func centralSource(_ store: UniqueID) throws -> (id: Int64, revision: Int64) {
        try findSource.bind(store)
        guard try findSource.step() else { return (try addSource.insert(store), 0) }
        defer { findSource.reset() }
        return (findSource.integer(at: 0), findSource.integer(at: 1))
    }

    /// A store that was copied and then written to by two agents gives one number to two reports.
    private func refuseSharedIdentity(
        of target: Int64, _ source: IncomingStore.Source, _ incoming: IncomingStore
    ) throws {
        try findLast.bind(target)
        guard try findLast.step() else { return }
        defer { findLast.reset() }
        let theirs = try incoming.reportID(seq: findLast.integer(at: 0), ofSource: source.id)
        guard let theirs else { return }
        if try findLast.uniqueID(at: 1) != theirs {
            throw StoreError.sharedIdentity(path: incoming.path)
        }
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
