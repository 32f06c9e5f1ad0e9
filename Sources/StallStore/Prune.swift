// Deletes what is too old or too much from a central store.

internal import GRDB
package import StallModel

/// What `pruneStore` did.
package struct PruneSummary: Hashable, Sendable {
    package var deletedCount: Int
    /// The file's size with its log.
    package var bytesBefore: Int64
    package var bytesAfter: Int64
}

/// Deletes the oldest reports of a central store, with all that no other report needs, and shrinks
/// the file.
///
/// What was deleted does not come back: `ingest` remembers how far it has taken each source. Open
/// reports stay.
///
/// - Parameters:
///   - time: Reports that started before it go.
///   - bytes: The oldest go until the file is no larger.
package func pruneStore(
    path: String, startedBefore time: UnixTime? = nil, toBytes bytes: Int64? = nil
) throws(StoreError) -> PruneSummary {
    guard FileFacts(path) != nil else { throw .missing(path: path) }
    let file = try StoreFile.openForWriting(
        path: path, role: .central, followsLinks: true, wait: .seconds(60))
    func size() -> Int64 { (FileFacts(path)?.size ?? 0) + (FileFacts(path + "-wal")?.size ?? 0) }
    var summary = PruneSummary(deletedCount: 0, bytesBefore: size(), bytesAfter: 0)
    try StoreError.catching(path: path) {
        try file.queue.inDatabase { database in
            try database.execute(sql: "pragma temp_store = memory; pragma secure_delete = off")
            let eviction = Eviction(Connection(database, path: path))
            try database.inTransaction(.immediate) {
                if let time { summary.deletedCount += try eviction.delete(before: time) }
                try eviction.collect(runsBefore: time ?? UnixTime(microseconds: .min))
                if let bytes {
                    summary.deletedCount += try eviction.shrink(to: bytes, below: bytes, of: nil) {
                        try eviction.collect(runsBefore: .now())
                    }
                }
                return .commit
            }
            if summary.deletedCount > 0 { try database.execute(sql: "vacuum") }
        }
    }
    try file.close()
    summary.bytesAfter = size()
    return summary
}
