// Reads a store's content as rows that another store can import: everything that `ingest` of the file imports.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads the rows of a store, on the snapshot of its connection's transaction.
final class StoreRowReader {
    private let connection: Connection
    private let findRun, findLoop, findLoads, findExposure, findSuppression, findLoss,
        findLocation: Statement
    private let reports: ReportReader
    private let findReport, findImages, findRunOfReport: Statement
    private let places: StackRows
    /// The stores that rows were first written to, by their numbers.
    let stores: [Int64: UniqueID]
    private var runs: [Int64: ProcessRun] = [:]
    private var loops: [Int64: (run: Int64, name: String, threshold: Duration)] = [:]
    private var images: (run: UniqueID, images: [Image])?

    init(_ connection: Connection) throws {
        self.connection = connection
        stores = try connection.storesBySource()
        reports = try ReportReader(connection)
        places = try StackRows(connection)
        findRun = try connection.prepare(
            "select \(ProcessRun.columns) from process_run where id = ?")
        findLoop = try connection.prepare("select run, name, threshold_ns from loop where id = ?")
        findLoads = try connection.prepare(
            """
            select image.path, image.build_id, load_address, end_address
            from image_load join image on image.id = image_load.image
            where image_load.run = ? order by load_address, image.hash
            """)
        findExposure = try connection.prepare(
            """
            select \(ExposureRow.columns()) from exposure
            where source = ? and revision = ? and loop = ?
            """)
        findSuppression = try connection.prepare(
            """
            select revision, stall_count, total_ns from suppression
            where source = ? and loop = ? and place = ? and reason = ?
            """)
        findLoss = try connection.prepare(
            "select revision, report_count from loss where source = ? and run = ? and reason = ?")
        findLocation = try connection.prepare(
            """
            select location.revision, image.build_id is null, image.run from location
            join image on image.id = location.image where location.id = ?
            """)
        findReport = try connection.prepare(
            "\(ReportReader.query) where report.source = ? and report.seq = ?")
        findImages = try connection.prepare(imagesOfRun)
        findRunOfReport = try connection.prepare(
            """
            select loop.run from report join loop on loop.id = report.loop
            where source = ? and seq = ?
            """)
    }

    func store(_ source: Int64) throws -> UniqueID {
        guard let store = stores[source] else { throw findRun.damage("a row of no source") }
        return store
    }

    func run(_ id: Int64) throws -> ProcessRun {
        if let run = runs[id] { return run }
        try findRun.bind(id)
        guard try findRun.step() else { throw findRun.damage("process run \(id) is missing") }
        defer { findRun.reset() }
        let run = try ProcessRun(findRun)
        if runs.count == 10_000 { runs.removeAll() }
        runs[id] = run
        return run
    }

    func run(_ id: Int64, of store: UniqueID?) throws -> PortableRun {
        var images: [PlacedImage] = []
        try findLoads.bind(id)
        while try findLoads.step() {
            images.append(
                PlacedImage(
                    path: findLoads.optionalText(),
                    buildID: findLoads.optionalBytes().map(BuildID.init),
                    loadAddress: UInt64(bitPattern: try findLoads.integer()),
                    endAddress: UInt64(bitPattern: try findLoads.integer())))
        }
        return PortableRun(store: store, run: try run(id), images: images)
    }

    /// The run of a loop, by its number.
    func runNumber(ofLoop id: Int64) throws -> Int64 { try loop(id).run }

    /// The run of a report, by its number.
    func runNumber(ofReport seq: Int64, source: Int64) throws -> Int64? {
        try findRunOfReport.found(source, seq)
    }

    private func loop(_ id: Int64) throws -> (run: Int64, name: String, threshold: Duration) {
        if let loop = loops[id] { return loop }
        try findLoop.bind(id)
        guard try findLoop.step() else { throw findLoop.damage("loop \(id) is missing") }
        defer { findLoop.reset() }
        let loop = (
            run: try findLoop.integer(), name: findLoop.text(),
            threshold: try findLoop.duration()
        )
        if loops.count == 50_000 { loops.removeAll() }
        loops[id] = loop
        return loop
    }

    func watchedLoop(_ id: Int64, source: Int64) throws -> PortableRow {
        let loop = try loop(id)
        return .watchedLoop(
            PortableLoop(
                store: try store(source), run: try run(loop.run), loop: loop.name,
                threshold: loop.threshold))
    }

    func exposure(source: Int64, revision: Int64, loop id: Int64) throws -> PortableRow? {
        try findExposure.bind(source, revision, id)
        guard try findExposure.step() else { return nil }
        defer { findExposure.reset() }
        let row = try ExposureRow(findExposure)
        let loop = try loop(id)
        return .exposure(
            PortableExposure(
                store: try store(source), revision: revision,
                exposure: LoopExposure(
                    run: try run(loop.run), loop: loop.name, threshold: loop.threshold,
                    start: UnixTime(microseconds: row.start_us),
                    watched: .nanoseconds(row.watched_ns), busy: .nanoseconds(row.busy_ns),
                    readyDelay: .nanoseconds(row.readyDelay_ns),
                    microStallCount: Int(row.microStallCount),
                    microStallTime: .nanoseconds(row.microStall_ns), lengths: row.lengths)))
    }

    func suppression(
        source: Int64, loop id: Int64, place: Int64, reason: Int64
    ) throws -> PortableRow? {
        try findSuppression.bind(source, id, place, reason)
        guard try findSuppression.step() else { return nil }
        defer { findSuppression.reset() }
        let loop = try loop(id)
        guard let word = UInt8(exactly: reason).flatMap(SuppressionReason.init) else { return nil }
        return .suppression(
            PortableSuppression(
                store: try store(source), revision: try findSuppression.integer(),
                threshold: loop.threshold,
                stalls: SuppressedStalls(
                    run: try run(loop.run), loop: loop.name, place: place, reason: word,
                    // A store that was tampered with may say less than none.
                    count: Int(max(0, try findSuppression.integer())),
                    total: try findSuppression.duration())))
    }

    func loss(source: Int64, run id: Int64, reason: Int64) throws -> PortableRow? {
        try findLoss.bind(source, id, reason)
        guard try findLoss.step() else { return nil }
        defer { findLoss.reset() }
        guard let word = UInt8(exactly: reason).flatMap(LossReason.init) else { return nil }
        return .loss(
            PortableLoss(
                store: try store(source), revision: try findLoss.integer(),
                run: try run(id), reason: word, count: try findLoss.integer()))
    }

    /// - Parameter store: The store whose names it has.
    func location(_ id: Int64, of store: UniqueID) throws -> PortableRow? {
        try findLocation.bind(id)
        guard try findLocation.step() else { return nil }
        let (revision, isOfRun) = try (findLocation.integer(), findLocation.integer())
        let owner = findLocation.optionalInteger()
        findLocation.reset()
        let place = try places.place(id)
        return .location(
            PortableLocation(
                store: store, revision: revision,
                run: isOfRun == 1 ? try owner.map { try run($0) } : nil,
                location: place.location, frames: place.frames))
    }

    func report(source: Int64, seq: Int64) throws -> PortableReport? {
        try findReport.bind(source, seq)
        guard try findReport.step() else { return nil }
        defer { findReport.reset() }
        let (report, revision) = try reports.report(findReport)
        let origin = ReportOrigin(store: try store(source), seq: seq, revision: revision)
        return PortableReport(
            report: report, origin: origin, images: try images(ofRun: report.run.id))
    }

    private func images(ofRun run: UniqueID) throws -> [Image] {
        if let images, images.run == run { return images.images }
        try findImages.bind(run.bytes)
        let found = try readImages(findImages)
        images = (run, found)
        return found
    }
}
