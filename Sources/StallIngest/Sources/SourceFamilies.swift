// Maps an incoming source to one of the central store. A store contains its identity, and so do copies of it: VM
// images, containers, restored backups, and stores that claim to be another. Content distinguishes them: two copies
// that were both written to after the copy was made give one number to different reports. Both are kept, each as a
// source of its own.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Finds the source that an incoming store continues, or adds one. Works within the transaction of its caller.
final class SourceFamilies {
    /// A source of the central store, and how far it was imported.
    struct Branch: Hashable {
        var id: Int64
        var store: UniqueID
        var watermark = SourceWatermark()
        /// All reports up to this number were imported.
        var revision: Int64 { watermark.position.seq }
    }

    /// The source that an incoming source is imported into.
    struct Place {
        var target: Branch
        /// Other sources that were one store with it: a report that one of them has is not taken again.
        var siblings: [Branch]
        /// The source was added for it.
        var isNew = false
    }

    /// The store has only reports that are newer than its sources' positions: that an older report is missing proves
    /// nothing.
    var holdsOnlyNews = false

    private let runSources: RunSources
    private let findFamily, add, findReport, findLast, findExposure, anyExposure, findPruned,
        findAnywhere: Statement

    init(_ connection: Connection, interner: Interner) throws {
        runSources = try RunSources(connection, interner: interner)
        findFamily = try connection.prepare(
            """
            select id, store, \(SourceWatermark.columns) from source
            where store = ? or origin = ? order by id
            """)
        add = try connection.prepare("insert into source (store, origin) values (?, ?)")
        findReport = try connection.prepare("select id from report where source = ? and seq = ?")
        findLast = try connection.prepare(
            """
            select seq, id, start_us from report where source = ? and seq <= ?
            order by seq desc limit 1
            """)
        findExposure = try connection.prepare(
            "select count(*) from exposure where source = ? and revision = ? and start_us = ?")
        anyExposure = try connection.prepare(
            "select exists (select 1 from exposure where source = ?)")
        findAnywhere = try connection.prepare(
            """
            select report.state, report.duration_ns from report_day
            join report on report.source = report_day.source
                and report.seq between report_day.first_seq and report_day.last_seq
            where report_day.day = ? and report.id = ?
            """)
        findPruned = try connection.prepare(
            "select pruned_before_us from grouping where pruned_before_us is not null")
    }

    /// Where the reports of an incoming source belong.
    ///
    /// - Parameters:
    ///   - isStrict: Compares every report, not only the last one that both should have.
    ///   - isApart: It is none of the known sources, though nothing that remains of them shows it.
    func place(
        of source: IncomingStore.Source, in incoming: IncomingStore, isStrict: Bool, isApart: Bool
    ) throws -> Place {
        let name = source.origin ?? source.store
        let family = try branches(of: name)
        if isApart { return try apart(source, name, incoming, family) }
        // Sources of the same name first.
        let candidates =
            family.filter { $0.store == source.store } + family.filter { $0.store != source.store }
        var undecided: [Branch] = []
        for branch in candidates {
            let isNamed = branch.store == source.store
            guard isNamed || branch.revision > 0 else { continue }
            switch try compare(branch, source, incoming, family, isStrict: isStrict) {
            case .same: return Place(target: branch, siblings: family.filter { $0.id != branch.id })
            case .different: break
            case .related, .unknown: undecided.append(branch)
            }
        }
        // The reports that would distinguish them are pruned, or were written before the two diverged. A file that did
        // not change since has the revision that it was imported at; one that did is behind it.
        let fitting = undecided.filter { $0.revision <= source.revision }
        if let branch = fitting.max(by: { $0.revision < $1.revision }) ?? undecided.first {
            return Place(target: branch, siblings: family.filter { $0.id != branch.id })
        }
        return try apart(source, name, incoming, family)
    }

    /// A source of its own, which is added when it is not there.
    private func apart(
        _ source: IncomingStore.Source, _ name: UniqueID, _ incoming: IncomingStore,
        _ family: [Branch]
    ) throws -> Place {
        let isNew = !family.contains { $0.store == source.store }
        let store = isNew ? source.store : try derivedName(name, source, incoming, family)
        if let known = family.first(where: { $0.store == store }) {
            return Place(target: known, siblings: family.filter { $0.id != known.id })
        }
        let id = try add.insert(store, isNew ? source.origin : name)
        return Place(target: Branch(id: id, store: store), siblings: family, isNew: true)
    }

    /// Refuses an incoming source that gives a number of the target's to another report: before the first of several
    /// transactions, since committed rows cannot be moved to another source.
    func expectSame(
        _ target: Branch, _ source: IncomingStore.Source, in incoming: IncomingStore
    ) throws {
        guard try agrees(target, source, incoming) else {
            throw StoreError.sharedIdentity(path: incoming.path)
        }
    }

    /// Whether every number that both have is the same report's.
    private func agrees(
        _ branch: Branch, _ source: IncomingStore.Source, _ incoming: IncomingStore
    ) throws -> Bool {
        var agrees = true
        try incoming.forEachReport(ofSource: source.id) { report in
            if let known = try self.report(branch, report.seq), known != report.id {
                agrees = false
            }
            return agrees
        }
        return agrees
    }

    /// Every source that claims to be this store, or once was it.
    func branches(of store: UniqueID) throws -> [Branch] {
        try findFamily.bind(store, store)
        var branches: [Branch] = []
        while try findFamily.step() {
            branches.append(
                Branch(
                    id: try findFamily.integer(), store: try findFamily.uniqueID(),
                    watermark: try SourceWatermark(findFamily)))
        }
        return branches
    }

    /// Whether one of these sources has the report of this number and id.
    func holds(_ branches: [Branch], seq: Int64, id: UniqueID) throws -> Bool {
        try holder(among: branches, seq: seq, id: id) != nil
    }

    /// The source among these that has the report of this number and id.
    func holder(among branches: [Branch], seq: Int64, id: UniqueID) throws -> Int64? {
        for branch in branches where try report(branch, seq) == id { return branch.id }
        return nil
    }

    /// Whether any source has the report, and as much of the stall. Slow: for the few that are not where they should be.
    func holdsAnywhere(_ progress: ReportProgress, start_us: Int64) throws -> Bool {
        try progressAnywhere(progress.id, start_us: start_us).contains { !progress.surpasses($0) }
    }

    /// How far each source with the report has it. Slow.
    func progressAnywhere(_ id: UniqueID, start_us: Int64) throws -> [ReportProgress] {
        try findAnywhere.bind(start_us.day, id)
        defer { findAnywhere.reset() }
        var found: [ReportProgress] = []
        while try findAnywhere.step() {
            found.append(
                ReportProgress(
                    id: id, state: try findAnywhere.value(at: 0),
                    duration_ns: try findAnywhere.integer(at: 1)))
        }
        return found
    }

    func holdsExposure(_ branches: [Branch], revision: Int64, start_us: Int64) throws -> Bool {
        for branch in branches
        where try findExposure.number(branch.id, revision, start_us) > 0 {
            return true
        }
        return false
    }

    /// Reports that began before it may have been pruned; nil when none were.
    func prunedBefore() throws -> Int64? { try findPruned.found() }

    private enum Comparison {
        /// The newest report that both must have is the same.
        case same
        /// All comparable reports are from a time when they may have been one.
        case related
        case different, unknown
    }

    /// Whether a source and an incoming store were written by one agent, as far as both were written. Each must have
    /// the newest report of the other that is so old, and the newest stretch of watched time, unless they were pruned
    /// or made room.
    private func compare(
        _ branch: Branch, _ source: IncomingStore.Source, _ incoming: IncomingStore,
        _ family: [Branch], isStrict: Bool
    ) throws -> Comparison {
        if isStrict {
            return try agrees(branch, source, incoming) ? .same : .different
        }
        let limit = min(branch.revision, source.revision)
        guard limit > 0 else { return .unknown }
        let theirs = try incoming.lastReport(ofSource: source.id, upTo: limit)
        let ours = try lastReport(of: branch, upTo: limit)
        if let theirs, let ours, theirs.seq == ours.seq {
            guard theirs.id == ours.id else { return .different }
            // Two copies may have diverged without a report since.
            return try watchedApart(
                branch, source, incoming, family, behind: theirs.seq, upTo: limit)
                ? .different : .same
        }
        var found = Comparison.unknown
        if let theirs {
            if try report(branch, theirs.seq) == theirs.id
                || holds(family, seq: theirs.seq, id: theirs.id)
            {
                found = .related
            } else if try !isElsewhere(theirs, source, incoming), try !wasPruned(theirs.start_us) {
                return .different
            }
        }
        if let ours {
            let kept = try incoming.report(ofSource: source.id, seq: ours.seq)
            if kept == ours.id {
                found = .related
            } else if try kept != nil || incoming.hasReport(ofSource: source.id, before: ours) {
                return .different
            }
        }
        if let last = try incoming.lastExposure(ofSource: source.id, upTo: limit),
            try !wasPruned(last.start_us),
            // Stores that were imported by programs before schema version 4 have none.
            try anyExposure.number(branch.id) == 1
        {
            if try holdsExposure(family, revision: last.revision, start_us: last.start_us) {
                return .related
            }
            guard try isElsewhere(last, incoming) else { return .different }
        }
        return found
    }

    /// Whether one of both, behind the newest report that both have, has watched time that the other does not have.
    private func watchedApart(
        _ branch: Branch, _ source: IncomingStore.Source, _ incoming: IncomingStore,
        _ family: [Branch], behind seq: Int64, upTo limit: Int64
    ) throws -> Bool {
        guard limit > seq, try anyExposure.number(branch.id) == 1,
            let theirs = try incoming.lastExposure(ofSource: source.id, upTo: limit),
            theirs.revision > seq, try !wasPruned(theirs.start_us)
        else { return false }
        return try !holdsExposure(family, revision: theirs.revision, start_us: theirs.start_us)
            && !isElsewhere(theirs, incoming)
    }

    /// Whether a source of another name has the report: then it is not imported again, and that this source does not
    /// have it shows nothing.
    private func isElsewhere(
        _ report: IncomingStore.ReportKey, _ source: IncomingStore.Source, _ incoming: IncomingStore
    ) throws -> Bool {
        guard let run = try incoming.run(ofReport: report.seq, ofSource: source.id) else {
            return false
        }
        return try runSources.holds(report, of: run)
    }

    private func isElsewhere(
        _ stretch: IncomingStore.ExposureKey, _ incoming: IncomingStore
    ) throws -> Bool {
        try runSources.holds(stretch, of: incoming.run(ofLoop: stretch.loop))
    }

    private func wasPruned(_ start_us: Int64) throws -> Bool {
        try holdsOnlyNews || prunedBefore().map { start_us < $0 } ?? false
    }

    /// The report of the highest number up to one that is under a source.
    private func lastReport(
        of branch: Branch, upTo limit: Int64
    ) throws -> IncomingStore.ReportKey? {
        try findLast.bind(branch.id, limit)
        defer { findLast.reset() }
        return try findLast.step()
            ? IncomingStore.ReportKey(
                seq: try findLast.integer(), id: try findLast.uniqueID(),
                start_us: try findLast.integer())
            : nil
    }

    /// The name of a copy that diverged: by its first report of its own, which is the same for every central store.
    private func derivedName(
        _ name: UniqueID, _ source: IncomingStore.Source, _ incoming: IncomingStore,
        _ family: [Branch]
    ) throws -> UniqueID {
        var own: UniqueID?
        try incoming.forEachReport(ofSource: source.id) { report in
            if try !self.holds(family, seq: report.seq, id: report.id) { own = report.id }
            return own == nil
        }
        return Self.derivedName(name, own?.bytes ?? [])
    }

    static func derivedName(_ name: UniqueID, _ content: [UInt8]) -> UniqueID {
        var bytes: [UInt8] = []
        for part in 0..<2 as Range<UInt64> {
            var hash = ContentHash()
            hash.combine(part)
            hash.combine(bytes: name.bytes)
            hash.combine(bytes: content)
            withUnsafeBytes(of: hash.value.bigEndian) { bytes += $0 }
        }
        return UniqueID(bytes: bytes)!  // sixteen of them
    }

    private func report(_ branch: Branch, _ seq: Int64) throws -> UniqueID? {
        try findReport.bind(branch.id, seq)
        guard try findReport.step() else { return nil }
        defer { findReport.reset() }
        return try findReport.uniqueID()
    }
}
