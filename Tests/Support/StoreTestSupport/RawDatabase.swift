// SQLite itself as the oracle: none of the store's own code is between it and the file.

internal import CSQLite
package import Testing

/// A separate connection of the test, to read or corrupt a store.
package final class RawDatabase {
    private var handle: OpaquePointer?

    package init(_ path: String) throws {
        try #require(sqlite3_open(path, &handle) == SQLITE_OK)
        sqlite3_busy_timeout(handle, 10_000)
    }

    deinit { sqlite3_close(handle) }

    /// Runs SQL; the rows' columns, each as text.
    @discardableResult
    package func query(_ sql: String) throws -> [[String?]] {
        var rows: [[String?]] = []
        var rest: String? = sql
        while let text = rest {
            var statement: OpaquePointer?
            var tail = ""
            let code = text.withCString { start in
                var end: UnsafePointer<CChar>?
                let code = sqlite3_prepare_v2(handle, start, -1, &statement, &end)
                tail = end.map { String(cString: $0) } ?? ""
                return code
            }
            defer { sqlite3_finalize(statement) }
            try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle))): \(text)")
            guard statement != nil else { break }
            var step = sqlite3_step(statement)
            while step == SQLITE_ROW {
                rows.append(
                    (0..<sqlite3_column_count(statement)).map { column in
                        sqlite3_column_text(statement, column).map { String(cString: $0) }
                    })
                step = sqlite3_step(statement)
            }
            try #require(step == SQLITE_DONE, "\(String(cString: sqlite3_errmsg(handle))): \(text)")
            rest = tail
        }
        return rows
    }

    package func number(_ sql: String) throws -> Int {
        try #require(query(sql).first?.first?.flatMap { Int($0) })
    }
}

/// Expects a store without fault, in SQLite's own view.
package func expectSound(_ path: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let database = try RawDatabase(path)
    #expect(
        try database.query("pragma integrity_check") == [["ok"]], sourceLocation: sourceLocation)
    #expect(
        try database.query("pragma foreign_key_check").isEmpty, sourceLocation: sourceLocation)
}
