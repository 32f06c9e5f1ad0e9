// Writes an agent's reports as rows. AgentStore gives it transactions.

internal import StallModel

/// Writes one process's reports. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class AgentWriter {
    private let run: ProcessRun
    private let source: Int64
    private let interner: Interner
    private let reports: ReportRows
    private let openReports: OpenReports
    private let eviction: Eviction
    private let exposures: ExposureRows
    private let nextRevision, contentVersion, findOpen, findReport, addLoss, latestRuns: Statement
    private var images: [ImageKey: Interned] = [:]
    private var lastContentVersion: Int64?
    /// The report written last: it may come again with its cause when it has ended and no index finds it any more.
    private var last: (id: UniqueID, seq: Int64)?

    private struct ImageKey: Hashable {
        var path: String?
        var buildID: BuildID?
    }

    init(_ connection: Connection, run: ProcessRun) throws {
        let place = StoreLocation(of: connection.path)
        guard let source = try StoreIdentity(connection).own(at: place) else {
            throw StoreError.damaged(
                path: connection.path, detail: "the store's identity is missing")
        }
        self.run = run
        self.source = source
        interner = try Interner(connection)
        reports = try ReportRows(connection)
        openReports = try OpenReports(connection)
        eviction = Eviction(connection)
        exposures = try ExposureRows(connection)
        nextRevision = try connection.prepare(
            "update source set revision = revision + 1 where id = ? returning revision")
        contentVersion = try connection.prepare("pragma data_version")
        // Without the hint SQLite searches all reports of the source, of which few are open.
        findOpen = try connection.prepare(
            """
            select seq from report indexed by report_open
            where source = ? and state = 0 and id = ?
            """)
        // No index helps; used for the reports that a dead process left open, and for nothing else.
        findReport = try connection.prepare("select seq from report where source = ? and id = ?")
        latestRuns = try connection.prepare(
            "select \(ProcessRun.columns) from process_run order by id desc limit ?")
        addLoss = try connection.prepare(
            """
            insert into loss (source, run, reason, report_count, revision) values (?, ?, ?, ?, ?)
            on conflict do update
            set report_count = report_count + excluded.report_count, revision = excluded.revision
            """)
    }

    /// Forgets which rows there are when another process has written since: it may have evicted
    /// some.
    func notice() throws {
        let version = try contentVersion.number()
        if version != lastContentVersion { forget() }
        lastContentVersion = version
    }

    func forget() {
        interner.forget()
        images.removeAll(keepingCapacity: true)
    }

    func record(_ report: StallReport, images: [Image]) throws {
        let runID = try interner.run(report.run)
        let revision = try revision()
        let known =
            last?.id == report.id ? last?.seq : try findOpen.found(source, report.id)
        let row = try ReportRow(
            report, seq: known ?? revision, revision: revision,
            loop: loop(report.loop, report.threshold, of: report.run),
            mode: label(report.mode), activity: report.activity.map(label)
        ) { locations, _, isTruncated in try stack(locations, isTruncated: isTruncated) }
        _ = try reports.put(row, source: source)
        last = (report.id, row.seq)
        let used = Set(report.locations.map(key))
        for image in images {
            let key = ImageKey(path: image.path, buildID: image.buildID)
            guard used.contains(key) else { continue }
            try interner.place(
                image: self.image(key).id, run: runID,
                loadAddress: Int64(bitPattern: image.loadAddress),
                endAddress: Int64(bitPattern: image.endAddress))
        }
    }

    func unsymbolized(_ locations: [CodeLocation]) throws -> [CodeLocation] {
        var seen: Set<Int64> = []
        return try locations.filter { location in
            let hash = try self.hash(location)
            guard seen.insert(hash).inserted else { return false }
            return try interner.knownLocation(hash: hash)?.detail ?? 0 == 0
        }
    }

    func symbolize(_ frames: [CodeLocation: [Frame]], areFinal: Bool) throws {
        let revision = try revision()
        for (location, frames) in frames where !frames.isEmpty {
            let hash = try hash(location)
            guard let known = try interner.knownLocation(hash: hash) else { continue }
            try interner.name(
                location: Interned(id: known.id, hash: hash), frames.map(FrameNames.init),
                revision: revision, isFinal: areFinal)
        }
    }

    func countLosses(_ count: Int, reason: LossReason) throws {
        try addLoss.run(
            source, interner.run(run), Int64(reason.rawValue), Int64(count), revision())
    }

    func record(_ exposure: LoopExposure) throws {
        try exposures.put(
            ExposureRow(
                revision: revision(),
                loop: loop(exposure.loop, exposure.threshold, of: exposure.run),
                start_us: exposure.start.microseconds,
                watched_ns: min(exposure.watched.nanoseconds, ValueLimits.watched_ns),
                busy_ns: exposure.busy.nanoseconds,
                readyDelay_ns: exposure.readyDelay.nanoseconds,
                microStallCount: Int64(exposure.microStallCount),
                microStall_ns: exposure.microStallTime.nanoseconds, lengths: exposure.lengths),
            source: source)
    }

    func countSuppressed(_ stalls: SuppressedStalls, threshold: Duration) throws {
        try exposures.add(
            SuppressionRow(
                loop: loop(stalls.loop, threshold, of: stalls.run), place: stalls.place,
                reason: stalls.reason,
                count: Int64(stalls.count), total_ns: stalls.total.nanoseconds),
            source: source, revision: revision())
    }

    private func loop(
        _ name: String, _ threshold: Duration, of run: ProcessRun
    ) throws -> Int64 {
        try interner.loop(
            run: interner.run(run), name: name.clipped(toBytes: ValueLimits.nameBytes),
            threshold_ns: threshold.nanoseconds)
    }

    /// Longer ones are cut: ingest would refuse them.
    private func label(_ text: String) throws -> Int64 {
        try interner.label(text.clipped(toBytes: ValueLimits.labelBytes))
    }

    /// Records that the process runs: the files it leaves behind can be found from now on.
    func noteRun() throws { _ = try interner.run(run) }

    /// Keeps a stall of a process that is gone, if there is no report of it.
    func recordIfUnknown(_ report: StallReport) throws {
        guard try findReport.found(source, report.id) == nil else { return }
        try record(report, images: [])
    }

    func closeAbandoned(_ end: (OpenReport) -> OpenStallEnd?) throws {
        for report in try openReports.of(source) where report.run.id != run.id {
            guard let end = end(report) else { continue }
            try openReports.close(report.seq, of: source, as: end, revision: revision())
            try reports.renewChecksum(source: source, seq: report.seq)
        }
    }

    /// The last runs of the store, without this one.
    func latestRuns(_ count: Int) throws -> [ProcessRun] {
        try latestRuns.bind(Int64(count))
        var runs: [ProcessRun] = []
        while try latestRuns.step() { runs.append(try ProcessRun(latestRuns)) }
        return runs.filter { $0.id != run.id }
    }

    /// Deletes reports that are too old, and the oldest where the store is about to exceed `limit`
    /// bytes.
    func evict(startedBefore time: UnixTime?, above limit: Int64) throws {
        func collect() throws { try eviction.collect(runsBefore: run.started) }
        var count = try time.map(eviction.delete(before:)) ?? 0
        try time.map(eviction.deleteExposure(before:))
        if count > 0 { try collect() }
        // The log may take a part of what is allowed, and going well below the limit makes
        // evictions rare.
        count += try eviction.shrink(
            to: limit / 10 * 7, below: limit / 10 * 9, of: source, collect: collect)
        guard count > 0 else { return }
        forget()
        try countLosses(count, reason: .evicted)
    }

    /// Deletes the oldest tenth of the reports and nothing else: as few writes as can be. A store
    /// so small that the reserve file alone will do for long keeps all.
    func makeRoom() throws {
        guard try eviction.usedBytes() > 256 << 10 else { return }
        let count = try eviction.deleteOldest(share: 0.1, of: source)
        if count > 0 { try countLosses(count, reason: .evicted) }
    }

    /// The next number of this store, never given out before.
    private func revision() throws -> Int64 {
        guard let revision = try nextRevision.found(source) else {
            throw nextRevision.damage("the store's identity is missing")
        }
        return revision
    }

    /// The number of a stack; nil for one without anything in it.
    private func stack(_ locations: [CodeLocation], isTruncated: Bool) throws -> Int64? {
        if locations.isEmpty && !isTruncated { return nil }
        let places = try locations.map {
            (location: try self.hash($0), isGuessed: $0.isGuessed)
        }
        let hash = ContentHash.stack(places, isTruncated: isTruncated)
        if let id = try interner.knownStack(hash: hash) { return id }
        let entries = try locations.map { location in
            let row = try interner.location(
                image: image(key(location)), offset: Int64(bitPattern: location.offset),
                kind: Int64(location.kind.rawValue))
            return StackEntry(location: row.id, isGuessed: location.isGuessed)
        }
        return try interner.addStack(hash: hash, entries, isTruncated: isTruncated)
    }

    private func hash(_ location: CodeLocation) throws -> Int64 {
        ContentHash.location(
            image: try image(key(location)).hash, offset: Int64(bitPattern: location.offset),
            kind: Int64(location.kind.rawValue))
    }

    private func key(_ location: CodeLocation) -> ImageKey {
        ImageKey(path: location.imagePath, buildID: location.buildID)
    }

    private func image(_ key: ImageKey) throws -> Interned {
        if let image = images[key] { return image }
        let owner = key.buildID == nil ? (id: try interner.run(run), uuid: run.id) : nil
        let image = try interner.image(
            path: key.path, buildID: key.buildID?.bytes, owner: owner)
        images[key] = image
        return image
    }
}
