// Opens store files of any origin for reading: in place, or as a private copy that may be brought up to date.

internal import CSQLite
internal import Glibc
internal import StallModel
package import StallStore

extension StoreFile {
    /// Opens a store for reading without changing anything in its directory.
    ///
    /// A store whose writer was killed may need its log replayed, and one without the log's index
    /// can only be read where an index can be made: such a store is copied, and the copy is opened.
    /// An agent's store of an older schema is copied as well, and the copy migrated.
    ///
    /// - Parameters:
    ///   - budget: The limit of the cost of reading: for a source, whose maker is not known.
    ///   - migrates: Otherwise a store of an older schema is opened as it is.
    package static func openForReading(
        path: String, wait: Duration, budget: SourceBudget? = nil, migrates: Bool = true
    ) throws(StoreError) -> StoreFile {
        try expectFile(path)
        let real = path.followingLink
        do throws(StoreError) {
            return try openForReading(path, real, wait, budget, migrates)
        } catch .foreign(_, 0) where SourceGuard.isBeingCreated(real) {
            throw .notReady(path: path)
        } catch {
            // Messages name the path that was given.
            throw real == path ? error : error.ofLink(path)
        }
    }

    private static func openForReading(
        _ path: String, _ real: String, _ wait: Duration, _ budget: SourceBudget?,
        _ migrates: Bool
    ) throws(StoreError) -> StoreFile {
        try SourceGuard.expectPlainCompanions(real)
        if try !PrivateCopy.isNeeded(real) {
            do {
                let file = try openAsItIs(
                    path, reading: absolute(real), readOnly: true, wait: wait, budget)
                if !migrates { return file }
                if file.fitsIntoMemory { return try file.migratedInMemory(budget) }
                try file.connection.close()
            } catch StoreError.readOnly, StoreError.cannotOpen {
                // The log's index is there and cannot be written by us.
            }
        }
        // The copy's names go as soon as SQLite has its files open: nothing is left behind, however
        // we end.
        let copy = try PrivateCopy(of: real, budget: budget)
        defer { withExtendedLifetime(copy) {} }
        let file = try openAsItIs(path, reading: copy.path, readOnly: false, wait: wait, budget)
        if !migrates { return file }
        return try file.fitsIntoMemory ? file.migratedInMemory(budget) : file.migratedInPlace()
    }

    /// The store itself when its schema is the newest; otherwise a copy of it that was migrated.
    ///
    /// - Throws: `StoreError.older` for a central store, which may be large and is the user's own
    ///   to migrate.
    private func migratedInMemory(_ budget: SourceBudget?) throws(StoreError) -> StoreFile {
        let newest = newestSchemaVersion
        guard schemaVersion < newest else { return self }
        guard role == .agent else {
            throw .older(path: path, version: schemaVersion, supported: newest)
        }
        let copy = try Connection(to: "", as: path, .inMemory) { handle in
            stall_sqlite_distrust(handle)
            budget?.bound(handle)
        }
        try connection.copy(to: copy)
        try Self.migrate(copy, from: schemaVersion)
        return StoreFile(path: path, connection: copy, role: role, schemaVersion: schemaVersion)
    }

    /// Whether bringing it up to date takes no more memory than there is for a source; most need nothing.
    private var fitsIntoMemory: Bool {
        schemaVersion >= newestSchemaVersion || role == .central
            || FileFacts(path)?.size ?? 0 <= Self.migratedBytes
    }

    /// The largest agent's store that is brought up to date in memory, which is faster.
    private static let migratedBytes: Int64 = 4 << 20

    /// The store itself, a private copy, migrated.
    private func migratedInPlace() throws(StoreError) -> StoreFile {
        try connection.transaction(.immediate) {
            try Self.migrate(connection, from: schemaVersion)
        }
        return self
    }

    private static func openAsItIs(
        _ path: String, reading file: String, readOnly: Bool, wait: Duration,
        _ budget: SourceBudget?
    ) throws(StoreError) -> StoreFile {
        let connection = try Connection(
            to: file, as: path, readOnly ? .readOnly : .readWrite, wait: wait
        ) { handle in
            // The file may have been made to harm its reader.
            stall_sqlite_distrust(handle)
            budget?.bound(handle)
        }
        try connection.execute("pragma cell_size_check = on")
        let (role, version) = try identify(connection)
        try expectTables(connection, version: version)
        if let budget, let handle = connection.handle {
            try CellSizes.expectSmall(handle, path: path) { () throws(StoreError) in
                try budget.check(path)
            }
        }
        return StoreFile(path: path, connection: connection, role: role, schemaVersion: version)
    }

    package static func expectFile(_ path: String) throws(StoreError) {
        guard let facts = FileFacts(path) else { throw unreachable(path) }
        guard facts.isRegular else { throw .notAFile(path: path) }
        guard facts.size > 0 else {
            let isNew = SourceGuard.isBeingCreated(path.followingLink)
            throw isNew ? .notReady(path: path) : .empty(path: path)
        }
    }
}
