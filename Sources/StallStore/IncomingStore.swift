// Reads the store that is being ingested, row by row, from one snapshot. It is input, from another
// program and perhaps another machine: what it says is checked, and any contradiction refuses the
// whole file.

internal import GRDB
internal import StallModel

/// A store that is being ingested. Numbers of its rows mean something in this file only.
struct IncomingStore {
    let path: String
    let role: StoreRole
    private let connection: Connection

    /// A store that reports in this file were first written to.
    struct Source {
        var id: Int64
        var store: [UInt8]
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

    /// Opens the file, and runs `body` on one snapshot of it.
    static func read<Answer>(
        _ path: String, _ body: (IncomingStore) throws -> Answer
    ) throws -> Answer {
        // A store that is locked now is taken by the next run; many others wait behind it.
        let file = try StoreFile.openForReading(path: path, wait: .milliseconds(200))
        return try StoreError.catching(path: path) {
            try file.queue.inDatabase { database in
                var answer: Answer?
                try database.inTransaction(.deferred) {
                    let connection = Connection(database, path: path)
                    answer = try body(
                        IncomingStore(path: path, role: file.role, connection: connection))
                    return .commit
                }
                return answer!  // set, or `body` has thrown
            }
        }
    }

    func sources() throws -> [Source] {
        let rows = try connection.prepare("select id, store, revision from source order by id")
        var sources: [Source] = []
        while try rows.step() {
            sources.append(
                Source(
                    id: rows.integer(at: 0), store: try rows.uniqueID(at: 1).bytes,
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
    func rows() throws -> IncomingRows { try IncomingRows(connection) }

    /// So too for exposure.
    func exposure() throws -> ExposureTransfer { try ExposureTransfer(connection) }

    func damage(_ detail: String) -> StoreError { .damaged(path: path, detail: detail) }
}
