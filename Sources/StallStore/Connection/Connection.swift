// One connection to SQLite, through its C interface. A wrapper's additions (a queue of its own, caches, observers,
// collations) would cost an agent descriptors, threads and time, and it needs none of them.
//
// No lock and no thread: the owner of a connection uses it from one thread at a time, and every type above says so.

internal import CSQLite
internal import Glibc
internal import StallModel

/// An open database. It closes when it and the last of its statements are released.
///
/// **Thread safety:** one thread at a time, which need not be the one that opened it.
package final class Connection {
    /// The path that was given, for errors; it need not be the file that is open.
    package let path: String
    package private(set) var handle: OpaquePointer?
    /// Counts while statements run.
    package var progress: StatementProgress? {
        didSet { progress?.follow(handle) }
    }

    package enum Access {
        /// The file must exist.
        case readOnly
        case readWrite
        /// A database of its own, which nothing is left of.
        case inMemory
    }

    /// How a transaction begins.
    package enum TransactionKind: String {
        /// A snapshot for reading.
        case deferred
        /// No other process writes until its end. One that would become a writer half-way may find that another was
        /// faster.
        case immediate
    }

    /// Opens a database.
    ///
    /// - Parameters:
    ///   - file: An absolute path: SQLite interprets other names in its own way.
    ///   - path: The path that errors name.
    ///   - wait: How long a statement waits for other processes' transactions. It is set before anything else: two processes
    ///     that create one store at the same time fail on the journal mode otherwise.
    ///   - prepare: Gets the connection before its first statement, with which SQLite reads the schema.
    package init(
        to file: String, as path: String, _ access: Access, wait: Duration = .zero,
        prepare: (OpaquePointer) -> Void = { _ in }
    ) throws(StoreError) {
        self.path = path
        let flags =
            switch access {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite, .inMemory: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        let name = access == .inMemory ? ":memory:" : file
        let files = GuardedFiles.name()
        let code = inSQLite {
            sqlite3_open_v2(name, &handle, flags | SQLITE_OPEN_NOMUTEX, files)
        }
        guard code == SQLITE_OK, let handle else {
            let error = StoreError(
                code: code, message: Self.reason(handle) ?? String(cString: sqlite3_errstr(code)),
                path: path)
            // Also a connection that could not be opened has to be closed.
            sqlite3_close(handle)
            handle = nil
            throw error
        }
        sqlite3_extended_result_codes(handle, 1)
        stall_sqlite_expect_plain_sql(handle)
        let wait_ms = wait / .milliseconds(1)
        sqlite3_busy_timeout(handle, CInt(min(wait_ms, Double(CInt.max))))
        prepare(handle)
        // SQLite opens anything, and finds out with the first statement what it is.
        _ = try self.prepare("select * from sqlite_schema limit 1").step()
    }

    deinit {
        // Statements hold the connection, so there are none.
        _ = inSQLite { sqlite3_close_v2(handle) }
    }

    /// Closes the database now. Its statements must be gone.
    package func close() throws(StoreError) {
        let code = inSQLite { sqlite3_close(handle) }
        guard code == SQLITE_OK else { throw error(code) }
        handle = nil
    }

    /// Abandons the database without closing it: its descriptors are not its own any more.
    func abandon() { handle = nil }

    /// From now on, the time to wait for other processes' transactions.
    package func wait(_ time: Duration) {
        sqlite3_busy_timeout(handle, CInt(min(max(0, time / .milliseconds(1)), Double(CInt.max))))
    }

    package func prepare(_ sql: String) throws(StoreError) -> Statement {
        try Statement(sql, on: self)
    }

    /// Runs statements of which no answer is wanted, to their ends.
    package func execute(_ sql: String) throws(StoreError) {
        guard let handle else { throw isClosed }
        let code = inSQLite { sqlite3_exec(handle, sql, nil, nil, nil) }
        guard code == SQLITE_OK else { throw error(code) }
    }

    /// The rows that the last statement inserted, changed or deleted.
    var changeCount: Int { Int(sqlite3_changes(handle)) }

    /// The key of the row that was inserted last.
    var lastInsertedKey: Int64 { sqlite3_last_insert_rowid(handle) }

    /// The meaning of the failure that just occurred.
    package func error(_ code: CInt) -> StoreError {
        let reason = code & 0xff == SQLITE_CANTOPEN ? Self.reason(handle) : nil
        return StoreError(
            code: code, message: reason ?? String(cString: sqlite3_errmsg(handle)), path: path)
    }

    /// Why a file cannot be opened that could be at another time; nil when that is not why.
    private static func reason(_ handle: OpaquePointer?) -> String? {
        guard let handle, case let code = sqlite3_system_errno(handle),
            code == EMFILE || code == ENFILE
        else { return nil }
        return String(cString: strerror(code))
    }

    var isClosed: StoreError { .cannotOpen(path: path, reason: "already closed") }

    /// Copies the whole database over another.
    package func copy(to other: Connection) throws(StoreError) {
        guard let backup = sqlite3_backup_init(other.handle, "main", handle, "main") else {
            throw StoreError(
                code: sqlite3_extended_errcode(other.handle),
                message: String(cString: sqlite3_errmsg(other.handle)), path: path)
        }
        let step = sqlite3_backup_step(backup, -1)
        let finish = sqlite3_backup_finish(backup)
        for code in [step == SQLITE_DONE ? SQLITE_OK : step, finish] where code != SQLITE_OK {
            throw StoreError(
                code: code, message: String(cString: sqlite3_errmsg(other.handle)), path: path)
        }
    }
}
