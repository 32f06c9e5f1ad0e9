// Imports one store: all of it at once, or in parts, one transaction per part. A committed part is not imported again,
// whenever the job ends: the position of a source moves in the transaction of its reports. Only the last part records
// that the source was imported, so that watched time, losses and names, which come with the first or the last one, are
// compared again where the job ended before.

internal import StallArchive
internal import StallModel
internal import StallStore

/// The import of one store. Works within the transactions of its caller; after a rollback it is of no use.
final class StoreTransfer {
    let incoming: IncomingStore
    /// Compares every number that both have first: after `sharedIdentity`.
    let isStrict: Bool
    /// Sources, by their numbers in the incoming store, that are none of the known ones: rows of them were missing.
    let apart: Set<Int64>
    private let writer: IngestWriter
    private let rows: RowImporter
    private var rest: ArraySlice<IncomingStore.Source>
    private var current: Current?
    /// Sources that were imported, which the last part records.
    private var finished: [(target: Int64, revision: Int64)] = []
    private(set) var added = 0
    private(set) var changed = 0
    /// Some report of it may change without the file.
    private(set) var hasOpenReports = false

    /// The source that is being imported.
    private struct Current {
        var source: IncomingStore.Source
        var target: SourceFamilies.Branch
        /// Nil once they were written.
        var reports: IncomingReports?
        var cursor: ReportCursor
        /// It is the target's, whatever comes.
        var isSure: Bool
    }

    init(
        _ incoming: IncomingStore, _ writer: IngestWriter, isStrict: Bool,
        apart: Set<Int64> = []
    ) throws {
        guard !incoming.sources.isEmpty else {
            throw incoming.damage("the store's identity is missing")
        }
        self.incoming = incoming
        self.writer = writer
        self.isStrict = isStrict
        self.apart = apart
        rest = incoming.sources[...]
        rows = RowImporter(
            incoming, interner: writer.interner, reports: writer.reports,
            grouping: writer.grouping, same: writer.same, evidence: writer.evidence,
            here: writer.here)
        rows.takesAllNames = writer.families.holdsOnlyNews
    }

    /// Forgets which rows the central store has: another process has written there between two parts.
    func forget() { rows.forget() }

    /// Imports the next part.
    ///
    /// - Parameter limit: The part ends behind about this many reports.
    /// - Returns: Whether all of the store is imported.
    func importNext(limit: Int = .max) throws -> Bool {
        var count = 0
        while let source = rest.first {
            if current == nil { try begin(source) }
            while current != nil, try importReports(&count) {
                guard count < limit else { return try pause() }
            }
            try finish(source)
            rest.removeFirst()
            if count >= limit, !rest.isEmpty { return try pause() }
        }
        // A central store keeps no revision of names; known names cost little.
        if incoming.role == .central, !finished.isEmpty { try rows.importNames(after: -1, of: nil) }
        for source in finished { try writer.settle(source.target, at: source.revision) }
        return true
    }

    /// Finds the target of a source, and imports the rows that come before its reports, if there is anything new.
    private func begin(_ source: IncomingStore.Source) throws {
        let place = try writer.families.place(
            of: source, in: incoming, isStrict: isStrict, isApart: apart.contains(source.id))
        let target = place.target
        let known = target.watermark.revision
        rows.targets[source.id] = target.id
        try rows.begin(target: target.id)
        rows.sibling =
            place.siblings.isEmpty
            ? nil
            : { [families = writer.families] in
                try families.holder(among: place.siblings, seq: $0, id: $1)
            }
        guard source.revision > known || source.hasLines else { return }
        // Before the reports: those of watched loops then count as such at once.
        var watched = try incoming.exposure().take(
            ofSource: source.id, after: known, to: writer.exposures, writer.exposureDays,
            target: target.id, loop: rows.loop,
            isKnown: { [families = writer.families] in
                try families.holdsExposure(place.siblings, revision: $0, start_us: $1)
            })
        watched.formUnion(try incoming.notedWatchedLoops(ofSource: source.id).map(rows.loop))
        try writer.grouping.noteWatched(watched, source: target.id)
        let news = try incoming.news(of: source, behind: position(of: source, target))
        rows.stackHashes = news.stackHashes
        current = Current(
            source: source, target: target, reports: news.reports, cursor: news.cursor,
            isSure: place.isNew || isStrict)
    }

    /// Where the new reports begin. Of a source of lines nothing says how far it was imported.
    private func position(
        of source: IncomingStore.Source, _ target: SourceFamilies.Branch
    ) -> SourcePosition {
        source.hasLines
            ? SourcePosition(whole: target.watermark.revision) : target.watermark.position
    }

    /// Imports some reports of the present source; false when there are no more.
    private func importReports(_ count: inout Int) throws -> Bool {
        guard var part = current else { return false }
        try incoming.budget.check(incoming.path)
        guard part.reports != nil || part.cursor.stage != .end else { return false }
        var reports =
            try part.reports ?? incoming.reports().reports(ofSource: part.source.id, &part.cursor)
        part.reports = nil
        current = part
        let taken = try rows.importReports(
            &reports.rows, of: part.source, behind: position(of: part.source, part.target))
        (added, changed) = (added + taken.added, changed + taken.changed)
        count += reports.rows.count
        return part.cursor.stage != .end
    }

    /// Ends a part.
    private func pause() throws -> Bool {
        for source in finished {
            try writer.note(SourcePosition(whole: source.revision), of: source.target)
        }
        if var part = current {
            if !part.isSure {
                try writer.families.expectSame(part.target, part.source, in: incoming)
            }
            part.isSure = true
            current = part
            try writer.note(
                part.cursor.position(at: part.source.revision), of: part.target.id)
        }
        return false
    }

    /// Imports the rows that come behind the reports of a source.
    private func finish(_ source: IncomingStore.Source) throws {
        guard let target = rows.targets[source.id] else { return }
        if let current {
            let known = current.target.watermark.revision
            if source.hasLines { try writer.noteLines(of: target) }
            try writer.importLosses(
                of: source, in: incoming, after: known, target: target, run: rows.run)
            if incoming.role == .agent { try rows.importNames(after: known, of: source.id) }
            finished.append((target, source.revision))
        }
        current = nil
        let (closed, open) = try writer.closeReports(of: target, source, incoming)
        changed += closed
        hasOpenReports = hasOpenReports || open > 0
    }
}
