// Writes the rows that are not reports and come as lines: watched time, stalls without a report, losses, process runs
// and names. Each row is complete, whatever came before it; of two states of one row the greater stays.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Takes rows over. Works within the transaction of its caller; `flush` is the last thing before a commit.
final class LineRows {
    private let interner: Interner
    private let grouping: Grouping
    private let exposures: ExposureRows
    private let days: ExposureDays
    private let families: SourceFamilies
    private let findExposure, findSuppressed, findLoss, setLoss: Statement
    private let findImage, findNames, findWatched: Statement
    /// Loops whose watched time came in this transaction, by their source.
    private var watched: [Int64: Set<Int64>] = [:]

    init(
        _ connection: Connection, interner: Interner, grouping: Grouping, exposures: ExposureRows,
        days: ExposureDays, families: SourceFamilies, setLoss: Statement
    ) throws {
        self.interner = interner
        self.grouping = grouping
        self.exposures = exposures
        self.days = days
        self.families = families
        self.setLoss = setLoss
        findExposure = try connection.prepare(
            "select watched_ns from exposure where source = ? and revision = ? and loop = ?")
        findSuppressed = try connection.prepare(
            """
            select stall_count from suppression
            where source = ? and loop = ? and place = ? and reason = ?
            """)
        findLoss = try connection.prepare(
            "select report_count from loss where source = ? and run = ? and reason = ?")
        findImage = try connection.prepare(
            """
            select count(*) from image_load join image on image.id = image_load.image
            where image_load.run = ? and image.hash = ?
            """)
        findNames = try connection.prepare(
            """
            select count(*) from location where hash = ? and detail >= ?
                and exists (select 1 from location_frame where location = location.id)
            """)
        findWatched = try connection.prepare(
            "select count(*) from watched_loop where source = ? and loop = ?")
    }

    func forget() {
        watched.removeAll()
        days.forget()
    }

    /// Writes the noted rows.
    func flush() throws {
        for (source, loops) in watched { try grouping.noteWatched(loops, source: source) }
        watched.removeAll(keepingCapacity: true)
        try days.flush()
    }

    /// - Parameter siblings: Sources that once were one with this one.
    /// - Returns: Nil where the store has as much already.
    func take(
        _ row: PortableExposure, source: Int64, siblings: [SourceFamilies.Branch]
    ) throws -> RowOutcome? {
        let stretch = row.exposure
        let loop = try loop(stretch.run, stretch.loop, stretch.threshold)
        let new = ExposureRow(
            revision: row.revision, loop: loop, start_us: stretch.start.microseconds,
            watched_ns: stretch.watched.nanoseconds, busy_ns: stretch.busy.nanoseconds,
            readyDelay_ns: stretch.readyDelay.nanoseconds,
            microStallCount: Int64(stretch.microStallCount),
            microStall_ns: stretch.microStallTime.nanoseconds, lengths: stretch.lengths)
        watched[source, default: []].insert(loop)
        if try families.holdsExposure(siblings, revision: new.revision, start_us: new.start_us) {
            return nil
        }
        let known = try findExposure.found(source, new.revision, loop)
        if let known, known >= new.watched_ns { return nil }
        if try known == nil && exposures.isElsewhere(new, source: source) { return nil }
        try days.note(new, source: source)
        try exposures.put(new, source: source)
        return known == nil ? .added : .changed
    }

    func take(_ row: PortableLoop, source: Int64) throws -> RowOutcome? {
        watched[source, default: []].insert(try loop(row.run, row.loop, row.threshold))
        return nil
    }

    func take(_ row: PortableSuppression, source: Int64) throws -> RowOutcome? {
        let stalls = row.stalls
        let new = SuppressionRow(
            loop: try loop(stalls.run, stalls.loop, row.threshold), place: stalls.place,
            reason: stalls.reason, count: Int64(stalls.count),
            total_ns: stalls.total.nanoseconds)
        let known = try findSuppressed.found(
            source, new.loop, new.place, Int64(new.reason.rawValue))
        try exposures.raise(new, source: source, revision: row.revision)
        return known.map { $0 < new.count ? .changed : nil } ?? .added
    }

    func take(_ row: PortableLoss, source: Int64) throws -> RowOutcome? {
        let (run, reason) = (try interner.run(row.run), Int64(row.reason.rawValue))
        let known = try findLoss.found(source, run, reason)
        try setLoss.run(source, run, reason, row.count, row.revision)
        return known.map { $0 < row.count ? .changed : nil } ?? .added
    }

    func take(_ row: PortableRun) throws -> RowOutcome? {
        let run = try interner.run(row.run)
        for image in row.images {
            let owner = image.buildID == nil ? (id: run, uuid: row.run.id) : nil
            let known = try interner.image(
                path: image.path, buildID: image.buildID?.bytes, owner: owner)
            try interner.place(
                image: known.id, run: run, loadAddress: Int64(bitPattern: image.loadAddress),
                endAddress: Int64(bitPattern: image.endAddress))
        }
        return nil
    }

    /// Imports the names of a location, where they are more detailed than the known ones. The location may come before
    /// the reports that show it.
    func take(_ row: PortableLocation, source: Int64) throws -> RowOutcome? {
        let frames = row.frames.map(FrameNames.init)
        guard !frames.isEmpty else { return nil }
        let location = row.location
        let image = try interner.image(
            path: location.imagePath, buildID: location.buildID?.bytes,
            owner: row.run.map { (id: try interner.run($0), uuid: $0.id) })
        let (offset, kind) = (Int64(bitPattern: location.offset), Int64(location.kind.rawValue))
        let hash = ContentHash.location(image: image.hash, offset: offset, kind: kind)
        let known = try interner.knownLocation(hash: hash)
        let place = try interner.location(image: image, offset: offset, kind: kind)
        let detail = FrameNames.detail(frames)
        guard known?.detail ?? 0 < detail else {
            if detail > 1 { try interner.compare(frames, withThoseOf: place, from: source) }
            return nil
        }
        let hasChanged = try interner.take(
            frames, ofLocation: place, knownDetail: known?.detail ?? 0, from: source)
        if let known, hasChanged {
            grouping.noteNames(ofLocation: place.id, wasLookedUp: known.detail > 0)
        }
        return known == nil ? .added : .changed
    }

    // MARK: Stored rows

    /// Whether the store has the stretch, or one of the same start that lasted longer.
    func holds(
        _ row: PortableExposure, source: Int64, siblings: [SourceFamilies.Branch]
    ) throws -> Bool {
        let stretch = row.exposure
        let loop = try loop(stretch.run, stretch.loop, stretch.threshold)
        let (start_us, watched_ns) = (stretch.start.microseconds, stretch.watched.nanoseconds)
        if let known = try findExposure.found(source, row.revision, loop), known >= watched_ns {
            return true
        }
        let wanted = ExposureRow(
            revision: row.revision, loop: loop, start_us: start_us, watched_ns: watched_ns,
            busy_ns: 0, readyDelay_ns: 0, microStallCount: 0, microStall_ns: 0,
            lengths: LengthHistogram())
        return try families.holdsExposure(siblings, revision: row.revision, start_us: start_us)
            || exposures.isElsewhere(wanted, source: source)
    }

    func holds(_ row: PortableLoop, source: Int64) throws -> Bool {
        try findWatched.number(source, loop(row.run, row.loop, row.threshold)) > 0
    }

    func holds(_ row: PortableSuppression, source: Int64) throws -> Bool {
        let stalls = row.stalls
        let known = try findSuppressed.found(
            source, loop(stalls.run, stalls.loop, row.threshold), stalls.place,
            Int64(stalls.reason.rawValue))
        return known ?? -1 >= Int64(stalls.count)
    }

    func holds(_ row: PortableLoss, source: Int64) throws -> Bool {
        guard let run = try interner.knownRun(row.run) else { return false }
        return try findLoss.found(source, run, Int64(row.reason.rawValue)) ?? -1 >= row.count
    }

    func holds(_ row: PortableRun) throws -> Bool {
        guard let run = try interner.knownRun(row.run) else { return false }
        return try row.images.allSatisfy { image in
            let hash = ContentHash.image(
                path: image.path, buildID: image.buildID?.bytes,
                run: image.buildID == nil ? row.run.id : nil)
            return try findImage.number(run, hash) > 0
        }
    }

    func holds(_ row: PortableLocation) throws -> Bool {
        let frames = row.frames.map(FrameNames.init)
        guard !frames.isEmpty else { return true }
        let location = row.location
        let image = ContentHash.image(
            path: location.imagePath, buildID: location.buildID?.bytes, run: row.run?.id)
        let hash = ContentHash.location(
            image: image, offset: Int64(bitPattern: location.offset),
            kind: Int64(location.kind.rawValue))
        return try findNames.number(hash, FrameNames.detail(frames)) > 0
    }

    private func loop(_ run: ProcessRun, _ name: String, _ threshold: Duration) throws -> Int64 {
        try interner.loop(
            run: interner.run(run), name: name, threshold_ns: threshold.nanoseconds)
    }
}

/// The outcome of a row in transfer, for the store that took it.
enum RowOutcome {
    case added, changed
    /// A report that was taken once, and pruned since.
    case pruned
    /// A report of a time that was pruned: nothing says whether it was here, and roll-ups count it.
    case leftOut
}
