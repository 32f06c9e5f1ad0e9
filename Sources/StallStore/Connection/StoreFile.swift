// Opens store files for writing: which files are refused, with which settings, and how a store is left behind.

internal import CLinux
internal import CSQLite
internal import Glibc
package import StallModel

/// An open store file of known role and schema version.
package struct StoreFile {
    package let path: String
    package let connection: Connection
    package let role: StoreRole
    package let schemaVersion: Int

    package init(path: String, connection: Connection, role: StoreRole, schemaVersion: Int) {
        (self.path, self.connection, self.role) = (path, connection, role)
        self.schemaVersion = schemaVersion
    }

    /// Opens a store for writing; creates and migrates it where needed.
    ///
    /// - Parameters:
    ///   - followsLinks: A symbolic link in place of the file is refused otherwise.
    ///   - wait: How long to wait for other processes' transactions.
    package static func openForWriting(
        path: String, role: StoreRole, followsLinks: Bool, wait: Duration
    ) throws(StoreError) -> StoreFile {
        try createIfMissing(path, followsLinks: followsLinks)
        let connection = try connectForWriting(path: path, wait: wait)
        // An app must live with whatever has been put in the place of its store.
        if role == .agent, let handle = connection.handle {
            stall_sqlite_limit_values(handle)
            _ = try connection.prepare("pragma user_version").number()
            try CellSizes.expectSmall(handle, path: path)
        }
        // Before the first table of a new store; an existing one adopts it when `prune` rebuilds it.
        if role == .central { try connection.execute("pragma auto_vacuum = incremental") }
        try prepare(connection, role: role)
        // Only once the file is known to be ours.
        try connection.execute("pragma journal_mode = wal")
        try connection.execute("pragma synchronous = normal")
        try connection.execute("pragma journal_size_limit = 1048576")
        return StoreFile(
            path: path, connection: connection, role: role, schemaVersion: newestSchemaVersion)
    }

    /// Opens a file that exists for writing, once it and those beside it are known to be harmless.
    package static func connectForWriting(
        path: String, wait: Duration
    ) throws(StoreError) -> Connection {
        try SourceGuard.expectPlainCompanions(path.followingLink)
        try SourceGuard.expectOwnJournal(path.followingLink)
        try expectWritable(path)
        // Foreign keys stay off, as SQLite has them: every reference is made from a row that was found or added just
        // before, in the same transaction. Looking each up again would double the work, and deleting a row would search
        // whole tables for others that name it. Tests and `checkStore` find missing rows.
        return try Connection(
            to: absolute(path), as: path, .readWrite, wait: wait,
            prepare: stall_sqlite_ignore_programs)
    }

    /// Closes the file. When no other process uses it, the log is folded in and one portable file
    /// remains.
    ///
    /// - Returns: Whether no other process uses it.
    @discardableResult
    package func close() throws(StoreError) -> Bool {
        if wasMoved() {
            try connection.close()
            return false
        }
        // Fails at once while others have the file open, as it should.
        try? connection.execute("pragma busy_timeout = 0")
        let mode = try? connection.prepare("pragma journal_mode = delete").firstText()
        try connection.close()
        return mode == "delete"
    }

    /// Whether the path leads elsewhere by now: the file was deleted, moved or replaced.
    ///
    /// Then the files that SQLite would delete at the end, by name, belong to whatever is there now. So the connection
    /// is configured to leave the log's file alone.
    package func wasMoved() -> Bool {
        var isMoved: CInt = 0
        guard let handle = connection.handle,
            sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) == SQLITE_OK,
            isMoved != 0
        else { return false }
        var keepsLog: CInt = 1
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keepsLog)
        return true
    }

    /// The role and schema version of a store that this program can read.
    package static func identify(
        _ connection: Connection
    ) throws(StoreError) -> (StoreRole, version: Int) {
        let path = connection.path
        let id = try applicationID(connection)
        let version = Int(try connection.prepare("pragma user_version").number())
        guard let role = StoreRole(rawValue: id) else {
            throw StoreError.foreign(path: path, applicationID: id)
        }
        guard version <= newestSchemaVersion else {
            throw StoreError.newer(path: path, version: version, supported: newestSchemaVersion)
        }
        guard migrationCount(ofVersion: version) != nil else {
            throw StoreError.damaged(path: path, detail: "there is no schema version \(version)")
        }
        return (role, version)
    }

    private static func applicationID(_ connection: Connection) throws(StoreError) -> Int32 {
        // SQLite keeps 32 bits.
        Int32(truncatingIfNeeded: try connection.prepare("pragma application_id").number())
    }

    /// Makes a new database a store, or brings a store to the newest schema, in one transaction.
    private static func prepare(_ connection: Connection, role: StoreRole) throws(StoreError) {
        try connection.transaction(.immediate) {
            let isNew =
                try applicationID(connection) == 0
                && connection.prepare("select count(*) from sqlite_schema").number() == 0
            if isNew {
                try connection.execute("pragma application_id = \(role.rawValue)")
            }
            let (found, version) = try identify(connection)
            guard found == role else {
                throw StoreError.wrongRole(path: connection.path, expected: role)
            }
            try migrate(connection, from: version)
            if role == .agent { try giveIdentity(connection, isNew: isNew) }
        }
    }

    /// Applies the migrations that a store of schema `version` has not seen. Within a transaction.
    package static func migrate(_ connection: Connection, from version: Int) throws(StoreError) {
        guard version < newestSchemaVersion, let count = migrationCount(ofVersion: version) else {
            return
        }
        if count == 0 {
            try connection.execute(newestSchema)
        } else {
            for migration in embeddedMigrations.dropFirst(count) {
                try connection.execute(migration.sql)
            }
        }
        try connection.execute("pragma user_version = \(newestSchemaVersion)")
    }

    /// Adds the row with the store's identity, by which its reports are known wherever they go. A store that was copied
    /// and is written elsewhere gets another one.
    private static func giveIdentity(_ connection: Connection, isNew: Bool) throws {
        let identity = try StoreIdentity(connection)
        guard try isNew || identity.hasAny() else {
            throw StoreError.damaged(
                path: connection.path, detail: "the store's identity is missing")
        }
        try identity.settle(StoreLocation(of: connection.path))
    }

    /// Makes an empty file that only its owner may read, so that SQLite's own files are as private.
    ///
    /// An existing file is never opened and closed here: closing any descriptor of a file drops all
    /// locks that this process holds on it, also those of another connection.
    private static func createIfMissing(_ path: String, followsLinks: Bool) throws(StoreError) {
        if let facts = FileFacts(path, followsLink: followsLinks) {
            guard !facts.isSymbolicLink else { throw .symbolicLink(path: path) }
            guard facts.isRegular else { throw .notAFile(path: path) }
            return
        }
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        let descriptor = stall_descriptor_own(
            open(path, flags | (followsLinks ? 0 : O_NOFOLLOW), 0o600))
        if descriptor >= 0 {
            fchmod(descriptor, 0o600)  // whatever the app's umask
            stall_descriptor_end(descriptor)
        } else if errno == ENOENT {
            throw .cannotOpen(path: path, reason: "its directory does not exist")
        } else if errno != EEXIST {  // EEXIST: another process was faster
            throw unreachable(path)
        }
    }

    /// SQLite opens a file that it cannot write for reading, and fails later with a poorer message.
    package static func expectWritable(_ path: String) throws(StoreError) {
        let directory = path.deletingLastComponent
        guard access(path, W_OK) == 0, access(directory, W_OK) == 0 else {
            throw .readOnly(path: path)
        }
    }

    package static func unreachable(_ path: String) -> StoreError {
        switch errno {
        case ENOENT: .missing(path: path)
        case EROFS: .readOnly(path: path)
        case ENOSPC, EDQUOT: .full(path: path)
        case let code: .cannotOpen(path: path, reason: String(cString: strerror(code)))
        }
    }

    /// SQLite interprets names such as `:memory:` and `file:` in its own way; none of them begins with a slash.
    package static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        guard let directory = getcwd(nil, 0) else { return "./" + path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path
    }
}

extension UnixTime {
    /// The wall clock's time.
    package static func now() -> UnixTime {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return UnixTime(
            microseconds: Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000)
    }
}
