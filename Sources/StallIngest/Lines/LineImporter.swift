// Writes reports that come one by one, outside of a store, as rows of the central one.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Takes reports over. Works within the transaction of its caller.
final class LineImporter {
    private let interner: Interner
    private let reports: ReportRows
    private let grouping: Grouping
    private let same: SameReports
    private let families: SourceFamilies
    private let evidence: EvidenceWriter
    private let findSource, addSource, findRevision, countLine: Statement
    let pruned: PrunedReports
    private var sources: [UniqueID: Int64] = [:]
    /// Every source that once was one with a store, and the store's own.
    private var branches: [UniqueID: [SourceFamilies.Branch]] = [:]
    /// The source of the report that is imported: the owner of its locations' names.
    private var namer: Int64 = 0

    /// The store that reports without an origin are known by; their numbers are hashes of their ids.
    static let nowhere = UniqueID(bytes: [UInt8](repeating: 0xff, count: 16))!

    init(
        _ connection: Connection, interner: Interner, reports: ReportRows, grouping: Grouping,
        same: SameReports, evidence: EvidenceWriter
    ) throws {
        self.same = same
        self.evidence = evidence
        self.interner = interner
        self.reports = reports
        self.grouping = grouping
        families = try SourceFamilies(connection, interner: interner)
        pruned = try PrunedReports(connection, grouping)
        countLine = try connection.prepare(
            "update source set line_count = line_count + 1 where id = ?")
        findSource = try connection.prepare("select id from source where store = ?")
        addSource = try connection.prepare("insert into source (store, origin) values (?, ?)")
        findRevision = try connection.prepare(
            "select revision from report where source = ? and seq = ?")
    }

    func forget() {
        sources.removeAll()
        branches.removeAll()
        pruned.forget()
    }

    private func family(of store: UniqueID) throws -> [SourceFamilies.Branch] {
        if let known = branches[store] { return known }
        let found = try families.branches(of: store)
        branches[store] = found
        return found
    }

    /// The other sources that once were one with a store.
    func siblings(of store: UniqueID, source: Int64) throws -> [SourceFamilies.Branch] {
        try family(of: store).filter { $0.id != source }
    }

    /// Adds the report, or brings the one that it is up to date.
    ///
    /// The position of its source does not move: other reports of that source may be elsewhere.
    ///
    /// - Parameter isCounted: Its source has lines then, of which no position says how far they go.
    /// - Returns: nil when the store has it as it is, or newer.
    /// - Throws: `LineFault` when another report has its number.
    func take(_ portable: PortableReport, isCounted: Bool = true) throws -> RowOutcome? {
        let report = portable.report
        // Slow, but only for lines that some other program wrote.
        if portable.origin == nil,
            try !families.progressAnywhere(report.id, start_us: report.start.microseconds).isEmpty
        {
            return nil
        }
        let origin = portable.origin ?? Self.originNowhere(report.id)
        guard let source = try source(origin, of: Self.progress(of: report)) else { return nil }
        namer = source
        if let revision = try findRevision.found(source, origin.seq) {
            // A sender may know that the process is gone, which the store itself never wrote. And of copies that both
            // continued with an open stall, one recorded more, whatever their revisions.
            let isMore = try reports.progress(source: source, seq: origin.seq).map {
                Self.progress(of: report).surpasses($0)
            }
            if revision >= origin.revision, isMore != true { return nil }
        } else {
            let isAlone = try portable.origin == nil || family(of: origin.store).count <= 1
            switch try pruned.answer(for: report, origin, source: source, isAlone: isAlone) {
            case .wasTaken: return .pruned
            case .isUnclear: return .leftOut
            case .isNew, nil: break
            }
        }
        let run = try interner.run(report.run)
        var row = try ReportRow(
            report, seq: origin.seq, revision: origin.revision,
            loop: interner.loop(
                run: run, name: report.loop, threshold_ns: report.threshold.nanoseconds),
            mode: interner.label(report.mode), activity: report.activity.map(interner.label)
        ) { try stack($0, $1, $2, run: (run, report.run.id)) }
        row.evidence = try evidence.share(row.cause)
        for image in portable.images {
            let known = try self.image(
                image.path, image.buildID, run: (run, report.run.id))
            try interner.place(
                image: known.id, run: run, loadAddress: Int64(bitPattern: image.loadAddress),
                endAddress: Int64(bitPattern: image.endAddress))
        }
        if try same.isSurpassed(row, in: source) { return nil }
        if try same.holds(row, source: source) { return nil }
        try grouping.decide(&row, source: source)
        guard let outcome = try reports.put(row, source: source) else {
            throw LineFault(line: 0, reason: "has the store and seq of another report")
        }
        try grouping.count(row, source: source, after: outcome)
        try same.note(row, source: source)
        if isCounted { try countLine.run(source) }
        if case .added = outcome { return .added }
        return .changed
    }

    private static func progress(of report: StallReport) -> ReportProgress {
        ReportProgress(
            id: report.id, state: report.state, duration_ns: report.duration.nanoseconds)
    }

    /// Whether the report is here, under whatever source, with as much of the stall. Its pending rows must have been
    /// flushed.
    func holds(_ portable: PortableReport) throws -> Bool {
        let progress = Self.progress(of: portable.report)
        if let origin = portable.origin,
            let holder = try families.holder(
                among: family(of: origin.store), seq: origin.seq, id: progress.id),
            let known = try reports.progress(source: holder, seq: origin.seq),
            !progress.surpasses(known)
        {
            return true
        }
        return try families.holdsAnywhere(
            progress, start_us: portable.report.start.microseconds)
    }

    static func originNowhere(_ id: UniqueID) -> ReportOrigin {
        var hash = ContentHash()
        hash.combine(bytes: id.bytes)
        return ReportOrigin(store: nowhere, seq: hash.value & .max, revision: hash.value & .max)
    }

    /// The source of a store's rows.
    func source(_ store: UniqueID) throws -> Int64 {
        if let known = sources[store] { return known }
        var source = try findSource.found(store)
        if source == nil {
            source = try addSource.insert(store, nil as UniqueID?)
            if let source { pruned.note(addedSource: source) }
        }
        guard let source else { throw addSource.damage("a source without a number") }
        same.noteSource()
        sources[store] = source
        branches.removeAll()
        return source
    }

    /// The source that a report belongs to; nil when another that was one with it has the report. Where the number is
    /// another report's, the line is of a copy that diverged.
    private func source(_ origin: ReportOrigin, of progress: ReportProgress) throws -> Int64? {
        let id = progress.id
        let source = try source(origin.store)
        guard origin.store != Self.nowhere else { return source }
        let family = try family(of: origin.store)
        let (own, others) = (family.filter { $0.id == source }, family.filter { $0.id != source })
        if let holder = try families.holder(among: others, seq: origin.seq, id: id) {
            let known = try reports.progress(source: holder, seq: origin.seq)
            return known.map(progress.surpasses) == true ? holder : nil
        }
        guard try findRevision.found(source, origin.seq) != nil,
            try !families.holds(own, seq: origin.seq, id: id)
        else { return source }
        for branch in others where try findRevision.found(branch.id, origin.seq) == nil {
            return branch.id
        }
        branches.removeAll()
        return try addSource.insert(
            SourceFamilies.derivedName(origin.store, id.bytes), origin.store as UniqueID?)
    }

    private func image(
        _ path: String?, _ buildID: BuildID?, run: (id: Int64, uuid: UniqueID)
    ) throws -> Interned {
        try interner.image(
            path: path, buildID: buildID?.bytes, owner: buildID == nil ? run : nil)
    }

    private func stack(
        _ locations: [CodeLocation], _ frames: [Frame], _ isTruncated: Bool,
        run: (id: Int64, uuid: UniqueID)
    ) throws -> Int64? {
        if locations.isEmpty && !isTruncated { return nil }
        var frames = frames[...]
        let places = try locations.map { location in
            let image = try image(location.imagePath, location.buildID, run: run)
            let (offset, kind) = (Int64(bitPattern: location.offset), Int64(location.kind.rawValue))
            let hash = ContentHash.location(image: image.hash, offset: offset, kind: kind)
            let isNew = try interner.knownLocation(hash: hash) == nil
            let place = try interner.location(image: image, offset: offset, kind: kind)
            // The frames of a location end with the one that is not inlined.
            let count = (frames.firstIndex { !$0.isInlined } ?? frames.endIndex) + 1
            let own = frames.prefix(upTo: min(count, frames.endIndex))
            frames = frames.dropFirst(own.count)
            try name(place, own, isNew: isNew)
            return (place: place, isGuessed: location.isGuessed)
        }
        let hash = ContentHash.stack(
            places.map { ($0.place.hash, $0.isGuessed) }, isTruncated: isTruncated)
        if let known = try interner.knownStack(hash: hash) { return known }
        let entries = places.map { StackEntry(location: $0.place.id, isGuessed: $0.isGuessed) }
        return try interner.addStack(hash: hash, entries, isTruncated: isTruncated)
    }

    /// Attaches names that are more detailed than those the store has.
    private func name(_ place: Interned, _ frames: ArraySlice<Frame>, isNew: Bool) throws {
        let names = frames.map(FrameNames.init)
        // A frame without a name does not say whether it was looked up; one inlined into another does.
        let detail = FrameNames.detail(names)
        guard detail > 1 || names.count > 1 || names.first?.file != nil,
            let known = try interner.knownLocation(hash: place.hash),
            known.detail < detail
        else { return }
        let hasChanged = try interner.take(
            names, ofLocation: place, knownDetail: known.detail, from: namer)
        if hasChanged && !isNew {
            grouping.noteNames(ofLocation: place.id, wasLookedUp: known.detail > 0)
        }
    }
}
