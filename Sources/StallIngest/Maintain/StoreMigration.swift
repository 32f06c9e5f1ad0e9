// Brings a store up to date because its owner asks for it.

internal import StallArchive
internal import StallModel
package import StallStore

/// Brings a store of either role to the newest schema.
///
/// - Returns: The schema versions before and after; equal when there was nothing to do.
package func migrateStore(path: String) throws(StoreError) -> (from: Int, to: Int) {
    try StoreFile.migrate(path: path)
}

extension StoreFile {
    /// Brings an existing store of either role to the newest schema.
    static func migrate(path: String) throws(StoreError) -> (from: Int, to: Int) {
        try expectFile(path)
        let connection = try connectForWriting(path: path, wait: .seconds(60))
        let found = try connection.transaction(.immediate) {
            let (_, found) = try identify(connection)
            try migrate(connection, from: found)
            return found
        }
        return (found, newestSchemaVersion)
    }
}
