// Reads the store that is being ingested, row by row, from one snapshot. It is input, from another program and perhaps
// another machine: its content is checked, and any contradiction refuses the whole file.

internal import StallArchive
internal import StallModel
internal import StallStore

/// A store that is being ingested: one snapshot of it. Numbers of its rows mean something in this
/// file only.
///
/// **Thread safety:** one thread at a time: the one that reads ahead, then the one that takes it.
final class IncomingStore: @unchecked Sendable {
    let path: String
    let role: StoreRole
    let sources: [Source]
    private let file: StoreFile
    let connection: Connection
    private var preparedRows: IncomingRows?
    private var preparedReports: IncomingReportRows?
    private var preparedExposure: ExposureImporter?
    /// More is new in it than is read ahead, as far as that is known: it is not to be held in memory.
    private(set) var isLarge: Bool
    /// The news of one source, read ahead.
    private var ahead: (source: Int64, news: News)?
    /// The budget for reading it.
    let budget: SourceBudget
    private var namedAhead: (revision: Int64, places: [IncomingRows.NamedLocation])?

    /// A store that reports in this file were first written to.
    struct Source {
        var id: Int64
        var store: UniqueID
        var revision: Int64
        /// The store that this one was a copy of until the two diverged.
        var origin: UniqueID?
        /// Some of its rows came as lines: then `revision` does not say how many there are.
        var hasLines: Bool
    }
    struct Loop {
        var run: Int64
        var name: String
        var threshold_ns: Int64
    }
    struct Image {
        var hash: Int64
        var path: String?
        var buildID: [UInt8]?
        var run: Int64?
    }
    struct Location {
        var hash: Int64
        var image: Int64
        var offset: Int64
        var kind: Int64
        /// The detail in which it is known.
        var detail: Int64
    }
    struct Stack {
        var entries: [StackEntry]
        var isTruncated: Bool
    }

    /// The rows that have come to a source since a position, as far as they were read.
    struct News {
        /// Where the reading is; more comes behind it.
        var cursor: ReportCursor
        var reports: IncomingReports
        /// The content hashes that the file claims for the stacks that the reports show.
        var stackHashes: [Int64: Int64]
    }

    /// Opens the file. All later reads are of one snapshot.
    init(_ path: String, stop: StopFlag = StopFlag()) throws(StoreError) {
        let budget = SourceBudget(
            bytes: ["", "-wal"].reduce(0) { $0 + (FileFacts(path + $1)?.allocatedBytes ?? 0) },
            stop: stop)
        // A store that is locked now is taken by the next run; many others wait behind it.
        let file = try budget.spend { () throws(StoreError) in
            do throws(StoreError) {
                return try StoreFile.openForReading(
                    path: path, wait: .milliseconds(200), budget: budget)
            } catch { throw error.ofSource(budget) }
        }
        self.path = path
        self.file = file
        self.budget = budget
        role = file.role
        isLarge = file.role == .central
        connection = file.connection
        // It ends with the connection.
        try connection.execute("begin deferred")
        sources = try StoreError.catching(path: path) {
            try Self.sources(file.connection, role: file.role)
        }
    }

    deinit { close() }

    /// Gives the file up.
    func close() {
        // Statements must go before their connection does.
        (preparedRows, preparedReports, preparedExposure) = (nil, nil, nil)
        try? connection.close()
    }

    /// Runs `body`, which may ask for everything below.
    func use<Answer>(_ body: () throws -> Answer) throws(StoreError) -> Answer {
        try budget.spend { () throws(StoreError) in
            do throws(StoreError) {
                return try StoreError.catching(path: path, body)
            } catch {
                throw error.path == path ? error.ofSource(budget) : error
            }
        }
    }

    /// Reads the news of the first source that has any, so that they are there when asked for. An agent's store has one
    /// source.
    ///
    /// - Parameter known: How far a source was imported.
    func prefetcher(known: (UniqueID) -> SourceWatermark) throws {
        for source in sources {
            let known = known(source.store)
            guard source.revision > known.revision || source.hasLines else { continue }
            let news = try readNews(of: source, behind: known.position)
            ahead = (source.id, news)
            isLarge = isLarge || news.cursor.stage != .end
            _ = try exposure()
            if role == .agent {
                namedAhead = (
                    known.revision, try rows().namedLocations(after: known.revision, behind: .min)
                )
            }
            return
        }
    }

    /// The news of a source. They may begin at an earlier position, and are given away.
    func news(of source: Source, behind position: SourcePosition) throws -> News {
        if let ahead, ahead.source == source.id,
            ahead.news.cursor.start.isBehind(orAt: position)
        {
            self.ahead = nil
            return ahead.news
        }
        return try readNews(of: source, behind: position)
    }

    /// The first locations whose names changed after a revision, perhaps with some that changed before.
    func firstNamed(after revision: Int64) throws -> [IncomingRows.NamedLocation] {
        if let namedAhead, namedAhead.revision <= revision {
            self.namedAhead = nil
            return namedAhead.places
        }
        return try rows().namedLocations(after: revision, behind: .min)
    }

    private func readNews(of source: Source, behind position: SourcePosition) throws -> News {
        var cursor = ReportCursor(from: position)
        let reports = try self.reports().reports(ofSource: source.id, &cursor)
        return News(
            cursor: cursor, reports: reports,
            stackHashes: try rows().stackHashes(of: reports.rows))
    }

    private static func sources(_ connection: Connection, role: StoreRole) throws -> [Source] {
        // Lines of rows besides reports are not counted. An agent's revision covers all of its own.
        let others = ["exposure", "suppression", "loss"].map {
            "or exists (select 1 from \($0) where source = source.id and revision > source.revision)"
        }
        let rows = try connection.prepare(
            """
            select id, store, revision, origin,
                line_count <> 0 \(role == .central ? others.joined(separator: " ") : "")
            from source order by id
            """)
        var sources: [Source] = []
        while try rows.step() {
            let (id, store) = (try rows.integer(), try rows.uniqueID())
            let revision = try rows.limited(0...ValueLimits.revision, "revision")
            sources.append(
                Source(
                    id: id, store: store, revision: revision, origin: try rows.optionalUniqueID(),
                    hasLines: try rows.integer() != 0))
        }
        return sources
    }

    /// The columns of a report that identify it.
    struct ReportKey {
        var seq: Int64
        var id: UniqueID
        var start_us: Int64
    }

    /// The report of the highest number up to one; nil when there is none (any more).
    func lastReport(ofSource source: Int64, upTo limit: Int64) throws -> ReportKey? {
        let row = try connection.prepare(
            """
            select seq, id, start_us from report where source = ? and seq <= ?
            order by seq desc limit 1
            """)
        try row.bind(source, limit)
        return try row.step() ? Self.key(row) : nil
    }

    /// The id of the report of a number; nil when there is none.
    func report(ofSource source: Int64, seq: Int64) throws -> UniqueID? {
        let row = try connection.prepare("select id from report where source = ? and seq = ?")
        try row.bind(source, seq)
        return try row.step() ? try row.uniqueID() : nil
    }

    /// Whether there is an older report than this one. Stores make room by letting the oldest go.
    func hasReport(ofSource source: Int64, before key: ReportKey) throws -> Bool {
        let row = try connection.prepare(
            "select exists (select 1 from report where source = ? and seq < ? and start_us < ?)")
        try row.bind(source, key.seq, key.start_us)
        return try row.step() && row.integer() == 1
    }

    /// The columns of a stretch of watched time that identify it.
    struct ExposureKey {
        var revision: Int64
        var start_us: Int64
        var loop: Int64
    }

    /// The stretch of watched time of the highest revision up to one.
    func lastExposure(ofSource source: Int64, upTo limit: Int64) throws -> ExposureKey? {
        let row = try connection.prepare(
            """
            select revision, start_us, loop from exposure where source = ? and revision <= ?
            order by revision desc limit 1
            """)
        try row.bind(source, limit)
        return try row.step()
            ? ExposureKey(
                revision: try row.integer(), start_us: try row.integer(), loop: try row.integer())
            : nil
    }

    /// The process that a report is of; nil when there is no such report.
    func run(ofReport seq: Int64, ofSource source: Int64) throws -> ProcessRun? {
        let row = try connection.prepare("select loop from report where source = ? and seq = ?")
        return try row.found(source, seq).map(run(ofLoop:))
    }

    /// The process that a loop is of.
    func run(ofLoop loop: Int64) throws -> ProcessRun {
        let rows = try rows()
        return try rows.run(rows.loop(loop).run)
    }

    /// The loops of a source that a central store has noted as watched. Their watched time may be held under another
    /// source, which was a copy of this one, or be pruned.
    func notedWatchedLoops(ofSource source: Int64) throws -> [Int64] {
        guard role == .central, file.schemaVersion >= 12 else { return [] }
        let rows = try connection.prepare("select loop from watched_loop where source = ?")
        try rows.bind(source)
        var loops: [Int64] = []
        while try rows.step() { loops.append(try rows.integer()) }
        return loops
    }

    /// How many stalls only the roll-ups of a central store count: their reports were pruned there.
    func rolledUpCount() throws -> Int {
        guard role == .central else { return 0 }
        // Sums of a file that was tampered with may be beyond integers.
        let counted = try connection.prepare(
            """
            select cast(min(1e15, max(0, total(report_count) - (select count(*) from report)))
                as integer)
            from rollup where day_count = 1
            """)
        return Int(try counted.number())
    }

    /// Calls `body` with each report of a source, in the order of their numbers, until it says false.
    func forEachReport(
        ofSource source: Int64, _ body: (ReportKey) throws -> Bool
    ) throws {
        let rows = try connection.prepare(
            "select seq, id, start_us from report where source = ? order by seq")
        try rows.bind(source)
        while try rows.step() {
            guard try body(Self.key(rows)) else { return rows.reset() }
        }
    }

    private static func key(_ row: Statement) throws -> ReportKey {
        ReportKey(
            seq: try row.integer(), id: try row.uniqueID(),
            start_us: try row.integer())
    }

    /// The statements that are only needed where there is something new.
    func rows() throws -> IncomingRows {
        if let preparedRows { return preparedRows }
        let rows = try IncomingRows(connection)
        preparedRows = rows
        return rows
    }

    /// The same for reports.
    func reports() throws -> IncomingReportRows {
        if let preparedReports { return preparedReports }
        let reports = try IncomingReportRows(connection, role: role)
        preparedReports = reports
        return reports
    }

    /// The same for exposure.
    func exposure() throws -> ExposureImporter {
        if let preparedExposure { return preparedExposure }
        let exposure = try ExposureImporter(connection)
        preparedExposure = exposure
        return exposure
    }

    func damage(_ detail: String) -> StoreError { .damaged(path: path, detail: detail) }
}
