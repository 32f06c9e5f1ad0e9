// Reads the store that is being ingested, row by row, from one snapshot. It is input, from another
// program and perhaps another machine: what it says is checked, and any contradiction refuses the
// whole file.

internal import GRDB
internal import StallModel

/// A store that is being ingested: one snapshot of it. Numbers of its rows mean something in this
/// file only.
///
/// **Thread safety:** one thread at a time: the one that reads ahead, then the one that takes it.
final class IncomingStore: @unchecked Sendable {
    let path: String
    let role: StoreRole
    let sources: [Source]
    private let file: StoreFile
    private let connection: Connection
    private var preparedRows: IncomingRows?
    private var preparedExposure: ExposureTransfer?
    /// More is new in it than is read ahead, as far as that is known: it is not to be held in memory.
    private(set) var isLarge: Bool
    /// What is new of one source, read before anyone asked.
    private var ahead: (source: Int64, news: News)?
    private var namedAhead: (revision: Int64, places: [IncomingRows.NamedLocation])?

    /// A store that reports in this file were first written to.
    struct Source {
        var id: Int64
        var store: UniqueID
        var revision: Int64
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
        /// What is known of it.
        var detail: Int64
    }
    struct Stack {
        var entries: [StackEntry]
        var isTruncated: Bool
    }

    /// What has come to a source since a revision, as far as it was read.
    struct News {
        var revision: Int64
        var reports: IncomingRows.Reports
        /// What the file says that the content of stacks hashes to, of those that the reports show.
        var stackHashes: [Int64: Int64]
    }

    /// Opens the file. What is read from then on is of one snapshot.
    init(_ path: String) throws(StoreError) {
        // A store that is locked now is taken by the next run; many others wait behind it.
        let file = try StoreFile.openForReading(path: path, wait: .milliseconds(200))
        self.path = path
        self.file = file
        role = file.role
        isLarge = file.role == .central
        (connection, sources) = try StoreError.catching(path: path) {
            try file.queue.inDatabase { database in
                // It ends with the connection.
                try database.beginTransaction(.deferred)
                let connection = Connection(database, path: path)
                return (connection, try Self.sources(connection))
            }
        }
    }

    deinit { close() }

    /// Gives the file up.
    func close() {
        // Statements must go before their connection does.
        (preparedRows, preparedExposure) = (nil, nil)
        try? file.queue.close()
    }

    /// Runs `body`, which may ask for everything below.
    func use<Answer>(_ body: () throws -> Answer) throws(StoreError) -> Answer {
        try StoreError.catching(path: path) { try file.queue.inDatabase { _ in try body() } }
    }

    /// Reads what is new of the first source that has news, so that it is there when asked for. An
    /// agent's store has one.
    ///
    /// - Parameter known: The revision that a source was last taken over at.
    func readAhead(known: (UniqueID) -> Int64) throws {
        for source in sources {
            let revision = known(source.store)
            guard source.revision > revision else { continue }
            ahead = (source.id, try readNews(of: source, after: revision))
            isLarge = isLarge || ahead?.news.reports.areAll == false
            _ = try exposure()
            if role == .agent {
                namedAhead = (
                    revision, try rows().namedLocations(after: revision, behind: .min)
                )
            }
            return
        }
    }

    /// What is new of a source. It may begin at an earlier revision, and is given away.
    func news(of source: Source, after revision: Int64) throws -> News {
        if let ahead, ahead.source == source.id, ahead.news.revision <= revision {
            self.ahead = nil
            return ahead.news
        }
        return try readNews(of: source, after: revision)
    }

    /// The first places whose names changed after a revision, perhaps with some that changed before.
    func firstNamed(after revision: Int64) throws -> [IncomingRows.NamedLocation] {
        if let namedAhead, namedAhead.revision <= revision {
            self.namedAhead = nil
            return namedAhead.places
        }
        return try rows().namedLocations(after: revision, behind: .min)
    }

    private func readNews(of source: Source, after revision: Int64) throws -> News {
        let reports = try rows().reports(ofSource: source.id, after: revision, behind: nil)
        return News(
            revision: revision, reports: reports,
            stackHashes: try rows().stackHashes(of: reports.rows))
    }

    private static func sources(_ connection: Connection) throws -> [Source] {
        let rows = try connection.prepare("select id, store, revision from source order by id")
        var sources: [Source] = []
        while try rows.step() {
            sources.append(
                Source(
                    id: rows.integer(at: 0), store: try rows.uniqueID(at: 1),
                    revision: rows.integer(at: 2)))
        }
        return sources
    }

    /// The id of the report of this number; nil when it is not there (any more).
    func reportID(seq: Int64, ofSource source: Int64) throws -> UniqueID? {
        let row = try connection.prepare("select id from report where source = ? and seq = ?")
        try row.bind(source, seq)
        return try row.step() ? row.uniqueID(at: 0) : nil
    }

    /// The statements that are only needed where there is something new.
    func rows() throws -> IncomingRows {
        if let preparedRows { return preparedRows }
        let rows = try IncomingRows(connection)
        preparedRows = rows
        return rows
    }

    /// So too for exposure.
    func exposure() throws -> ExposureTransfer {
        if let preparedExposure { return preparedExposure }
        let exposure = try ExposureTransfer(connection)
        preparedExposure = exposure
        return exposure
    }

    func damage(_ detail: String) -> StoreError { .damaged(path: path, detail: detail) }
}
