// Opens store files: which files are refused, with which settings, and how a store is left behind.

internal import CSQLite
internal import Glibc
internal import StallModel
internal import Synchronization

/// An open store file of known role and schema version.
struct StoreFile {
    let path: String
    let connection: Connection
    let role: StoreRole
    let schemaVersion: Int

    /// Opens a store for writing; creates and migrates it where needed.
    ///
    /// - Parameters:
    ///   - followsLinks: A symbolic link in place of the file is refused otherwise.
    ///   - wait: How long to wait for other processes' transactions.
    static func openForWriting(
        path: String, role: StoreRole, followsLinks: Bool, wait: Duration
    ) throws(StoreError) -> StoreFile {
        try createIfMissing(path, followsLinks: followsLinks)
        try SourceGuard.expectPlainCompanions(path.followingLink)
        try expectWritable(path)
        // Foreign keys stay off, as SQLite has them: every reference is made from a row that was found or added just
        // before, in the same transaction. Looking each up again would double the work, and deleting a row would search
        // whole tables for others that name it. Tests and `checkStore` find what is wrong.
        let connection = try Connection(
            to: absolute(path), as: path, .readWrite, wait: wait,
            prepare: stall_sqlite_ignore_programs)
        // An app must live with whatever has been put in the place of its store.
        if role == .agent, let handle = connection.handle {
            stall_sqlite_limit_values(handle)
            _ = try connection.prepare("pragma user_version").number()
            try CellSizes.expectSmall(handle, path: path)
        }
        try prepare(connection, role: role)
        // Only once the file is known to be ours.
        try connection.execute("pragma journal_mode = wal")
        try connection.execute("pragma synchronous = normal")
        try connection.execute("pragma journal_size_limit = 1048576")
        return StoreFile(
            path: path, connection: connection, role: role, schemaVersion: newestSchemaVersion)
    }

    /// Opens a store for reading without changing anything in its directory.
    ///
    /// A store whose writer was killed may need its log replayed, and one without the log's index
    /// can only be read where an index can be made: such a store is copied, and the copy is opened.
    /// An agent's store of an older schema is copied as well, and the copy migrated.
    ///
    /// - Parameter budget: What reading it may cost: of a source, whose maker is not known.
    static func openForReading(
        path: String, wait: Duration, budget: SourceBudget? = nil
    ) throws(StoreError) -> StoreFile {
        try expectFile(path)
        let real = path.followingLink
        do throws(StoreError) {
            return try openForReading(path, real, wait, budget)
        } catch .foreign(_, 0) where SourceGuard.isBeingCreated(real) {
            throw .notReady(path: path)
        } catch {
            // What is said is said of the path that was given.
            throw real == path ? error : error.ofLink(path)
        }
    }

    private static func openForReading(
        _ path: String, _ real: String, _ wait: Duration, _ budget: SourceBudget?
    ) throws(StoreError) -> StoreFile {
        try SourceGuard.expectPlainCompanions(real)
        if try !PrivateCopy.isNeeded(real) {
            do {
                let file = try openAsItIs(
                    path, reading: absolute(real), readOnly: true, wait: wait, budget)
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
        return try file.fitsIntoMemory ? file.migratedInMemory(budget) : file.migratedInPlace()
    }

    /// Brings an existing store of either role to the newest schema.
    static func migrate(path: String) throws(StoreError) -> (from: Int, to: Int) {
        try expectFile(path)
        try expectWritable(path)
        let connection = try Connection(
            to: absolute(path), as: path, .readWrite, wait: .seconds(60))
        let found = try connection.transaction(.immediate) {
            let (_, found) = try identify(connection)
            try migrate(connection, from: found)
            return found
        }
        return (found, newestSchemaVersion)
    }

    /// Closes the file. When no other process uses it, the log is folded in and one portable file
    /// remains.
    ///
    /// - Returns: Whether no other process uses it.
    @discardableResult
    func close() throws(StoreError) -> Bool {
        if wasMoved() {
            try connection.close()
            return false
        }
        // Fails at once while others have the file open, which is what should happen then.
        try? connection.execute("pragma busy_timeout = 0")
        let mode = try? connection.prepare("pragma journal_mode = delete").firstText()
        try connection.close()
        return mode == "delete"
    }

    /// Whether the path leads elsewhere by now: the file was deleted, moved or replaced.
    ///
    /// Then what SQLite would tidy up at the end, by name, belongs to whatever is there now. So the connection is told
    /// to leave the log's file alone.
    func wasMoved() -> Bool {
        var isMoved: CInt = 0
        guard let handle = connection.handle,
            sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) == SQLITE_OK,
            isMoved != 0
        else { return false }
        var keepsLog: CInt = 1
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keepsLog)
        return true
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
            try CellSizes.expectSmall(handle, path: path, budget: budget)
        }
        return StoreFile(path: path, connection: connection, role: role, schemaVersion: version)
    }

    /// The role and schema version of a store that this program can read.
    private static func identify(
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
            throw StoreError.damaged(path: path, detail: "no store has schema version \(version)")
        }
        return (role, version)
    }

    private static func applicationID(_ connection: Connection) throws(StoreError) -> Int32 {
        // SQLite keeps 32 bits.
        Int32(truncatingIfNeeded: try connection.prepare("pragma application_id").number())
    }

    /// The tables that a store of a version has, by the migration that created them.
    static func tables(ofVersion version: Int) -> [String] {
        embeddedMigrations.prefix(migrationCount(ofVersion: version) ?? 0).flatMap(\.tables)
    }

    /// A store's tables are tables: a view of the same name would run whatever its maker wrote.
    private static func expectTables(
        _ connection: Connection, version: Int
    ) throws(StoreError) {
        let path = connection.path
        let rows = try connection.prepare(
            "select name, sql from sqlite_schema where type = 'table' and sql is not null")
        var found: [String: String] = [:]
        while try rows.step() { found[rows.text(at: 0)] = rows.text(at: 1) }
        for table in tables(ofVersion: version) {
            guard let sql = found[table] else {
                throw StoreError.damaged(path: path, detail: "it has no table \(table)")
            }
            // A virtual one is a program's that reads what its maker wrote.
            guard sql.prefix(12).lowercased() == "create table" else {
                throw StoreError.damaged(path: path, detail: "its table \(table) is no plain one")
            }
            guard knownTables.withLock({ !$0.contains(sql) }) else { continue }
            // A column that is computed runs whatever its maker wrote, and may be of any size.
            let columns = try connection.prepare("pragma table_xinfo(\(table))")
            while try columns.step() {
                guard try columns.integer(at: 6) != 0 else { continue }
                throw StoreError.damaged(
                    path: path, detail: "its table \(table) has a column that is computed")
            }
            knownTables.withLock { if $0.count < 1000 { $0.insert(sql) } }
        }
    }

    /// The tables that were found to be plain: those of all stores of one version are the same.
    private static let knownTables = Mutex<Set<String>>([])

    private static func expectFile(_ path: String) throws(StoreError) {
        guard let facts = FileFacts(path) else { throw unreachable(path) }
        guard facts.isRegular else { throw .notAFile(path: path) }
        guard facts.size > 0 else {
            let isNew = SourceGuard.isBeingCreated(path.followingLink)
            throw isNew ? .notReady(path: path) : .empty(path: path)
        }
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
    private static func migrate(_ connection: Connection, from version: Int) throws(StoreError) {
        guard version < newestSchemaVersion, let count = migrationCount(ofVersion: version) else {
            return
        }
        for migration in embeddedMigrations.dropFirst(count) {
            try connection.execute(migration.sql)
        }
        try connection.execute("pragma user_version = \(newestSchemaVersion)")
    }

    /// Adds the row that says which store this is: what its reports are known by wherever they go. A store that was
    /// copied and is written elsewhere gets another one.
    private static func giveIdentity(_ connection: Connection, isNew: Bool) throws {
        let identity = try StoreIdentity(connection)
        guard try isNew || identity.hasAny() else {
            throw StoreError.damaged(path: connection.path, detail: "it has no identity")
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
        let descriptor = open(path, flags | (followsLinks ? 0 : O_NOFOLLOW), 0o600)
        if descriptor >= 0 {
            Glibc.close(descriptor)
        } else if errno == ENOENT {
            throw .cannotOpen(path: path, reason: "its directory does not exist")
        } else if errno != EEXIST {  // EEXIST: another process was faster
            throw unreachable(path)
        }
    }

    /// SQLite opens what it cannot write for reading, and fails later with less to say.
    private static func expectWritable(_ path: String) throws(StoreError) {
        let directory = path.deletingLastComponent
        guard access(path, W_OK) == 0, access(directory, W_OK) == 0 else {
            throw .readOnly(path: path)
        }
    }

    private static func unreachable(_ path: String) -> StoreError {
        switch errno {
        case ENOENT: .missing(path: path)
        case EROFS: .readOnly(path: path)
        case ENOSPC, EDQUOT: .full(path: path)
        case let code: .cannotOpen(path: path, reason: String(cString: strerror(code)))
        }
    }

    /// SQLite reads names such as `:memory:` and `file:` its own way; none of them begins with a
    /// slash.
    private static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        guard let directory = getcwd(nil, 0) else { return "./" + path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path
    }
}

extension UnixTime {
    /// The wall clock's time.
    static func now() -> UnixTime {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return UnixTime(
            microseconds: Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000)
    }
}
