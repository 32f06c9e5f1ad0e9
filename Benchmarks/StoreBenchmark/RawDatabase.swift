// Plain SQLite: to measure its limits, and to create data in bulk outside of measurements.

import CSQLite

/// SQLite without anything of ours in between.
final class RawDatabase {
    let handle: OpaquePointer

    init(_ path: String) throws {
        var handle: OpaquePointer?
        guard sqlite3_open(path, &handle) == SQLITE_OK, let handle else {
            throw Failure(description: "cannot open \(path)")
        }
        self.handle = handle
    }

    deinit { sqlite3_close(handle) }

    func run(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
            throw Failure(description: String(cString: sqlite3_errmsg(handle)))
        }
    }

    /// `uuid7(start_us)`: a unique id for this time.
    func addUUID7() {
        sqlite3_create_function_v2(
            handle, "uuid7", 1, SQLITE_UTF8, nil,
            { context, _, arguments in
                var id = (0..<16).map { _ in UInt8.random(in: 0...255) }
                let milliseconds = sqlite3_value_int64(arguments?[0]) / 1_000
                for index in 0..<6 {
                    id[index] = UInt8(truncatingIfNeeded: milliseconds >> (40 - 8 * index))
                }
                id[6] = id[6] & 0x0f | 0x70
                id[8] = id[8] & 0x3f | 0x80
                sqlite3_result_blob64(
                    context, id, UInt64(id.count),
                    unsafeBitCast(-1, to: sqlite3_destructor_type.self))
            }, nil, nil, nil)
    }

    func prepare(_ sql: String) throws -> OpaquePointer {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement
        else { throw Failure(description: String(cString: sqlite3_errmsg(handle))) }
        return statement
    }

    /// The first column of the first row.
    func integer(_ sql: String) throws -> Int {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement) }
        return sqlite3_step(statement) == SQLITE_ROW ? Int(sqlite3_column_int64(statement, 0)) : 0
    }

    struct Failure: Error, CustomStringConvertible { let description: String }
}
