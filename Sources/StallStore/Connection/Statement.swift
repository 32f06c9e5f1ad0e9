// Statements, by SQLite's own interface: prepared once, bound and stepped for each row.

internal import CSQLite
package import StallModel

/// A prepared statement, reused. It holds its connection open.
package final class Statement {
    private let handle: OpaquePointer
    private let connection: Connection
    /// The column that is read next, where a read names none; 0 where none of the row was read in that way.
    private var column: CInt = 0

    package init(_ sql: String, on connection: Connection) throws(StoreError) {
        guard let database = connection.handle else { throw connection.isClosed }
        var prepared: OpaquePointer?
        let code = inSQLite {
            sqlite3_prepare_v3(
                database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        }
        guard code == SQLITE_OK, let prepared else { throw connection.error(code) }
        handle = prepared
        self.connection = connection
    }

    deinit { sqlite3_finalize(handle) }

    /// Starts over with these values, in the order of the question marks.
    ///
    /// Never inlined: there is a copy for each list of types already.
    @inline(never)
    package func bind<each Value: SQLValue>(_ values: repeat each Value) throws(StoreError) {
        reset()
        var index: CInt = 0
        var code = SQLITE_OK
        for value in repeat each values {
            index += 1
            if code == SQLITE_OK { code = value.bind(to: handle, at: index) }
        }
        guard code == SQLITE_OK else { throw connection.error(code) }
    }

    /// Starts over with values whose number is known only at run time.
    package func bind(all values: [any SQLValue]) throws(StoreError) {
        reset()
        for (index, value) in values.enumerated() {
            let code = value.bind(to: handle, at: CInt(index) + 1)
            guard code == SQLITE_OK else { throw connection.error(code) }
        }
    }

    /// Binds one value, to a statement that was reset.
    func bind(_ value: some SQLValue, at index: CInt) throws(StoreError) {
        let code = value.bind(to: handle, at: index)
        guard code == SQLITE_OK else { throw connection.error(code) }
    }

    /// Goes to the next row; false when there is none, and then the statement holds no lock any
    /// more.
    package func step() throws(StoreError) -> Bool {
        endRow()
        let code = inSQLite { sqlite3_step(handle) }
        if code == SQLITE_ROW { return true }
        let error = code == SQLITE_DONE ? nil : connection.error(code)
        sqlite3_reset(handle)
        if let error { throw error }
        return false
    }

    /// Runs a statement that answers no rows, or whose rows do not matter.
    package func run<each Value: SQLValue>(_ values: repeat each Value) throws(StoreError) {
        try bind(repeat each values)
        try finish()
    }

    /// Runs a statement whose values were bound.
    @inline(never)
    package func finish() throws(StoreError) {
        while try step() {}
    }

    /// Runs `insert` of one row into a table with an integer key, and returns the row's key.
    ///
    /// Without `returning`: it makes SQLite keep a copy of every page that the insert changes, in a
    /// file of its own, for the case that it fails half-way.
    package func insert<each Value: SQLValue>(_ values: repeat each Value) throws(StoreError)
        -> Int64
    {
        try run(repeat each values)
        return connection.lastInsertedKey
    }

    /// The number in the first column of the one row that the statement always answers: of a count, or a pragma.
    ///
    /// - Throws: `StoreError.damaged` where there is no row, or NULL in it.
    package func number<each Value: SQLValue>(_ values: repeat each Value) throws(StoreError)
        -> Int64
    {
        guard case .value(let value) = try first(repeat each values) else {
            throw damage("a number is missing")
        }
        return value
    }

    /// The number in the first column of the first row; nil when there is no row. For columns that hold one in each
    /// row.
    ///
    /// - Throws: `StoreError.damaged` where there is NULL in it.
    package func found<each Value: SQLValue>(_ values: repeat each Value) throws(StoreError)
        -> Int64?
    {
        switch try first(repeat each values) {
        case .noRow: return nil
        case .null: throw damage("a number is missing")
        case .value(let value): return value
        }
    }

    /// The columns of the first row; nil when there is no row.
    package func first<each Value: SQLValue>(
        _ values: repeat each Value
    ) throws(StoreError) -> FirstInteger {
        try bind(repeat each values)
        guard try step() else { return .noRow }
        defer { reset() }
        return optionalInteger(at: 0).map(FirstInteger.value) ?? .null
    }

    /// The first column of the first row, as text; nil when there is no row, or null in it.
    func firstText() throws(StoreError) -> String? {
        reset()
        defer { reset() }
        return try step() ? optionalText(at: 0) : nil
    }

    /// The error for a row that holds a value which no store of this schema can hold.
    package func damage(_ detail: String) -> StoreError {
        .damaged(path: connection.path, detail: detail)
    }

    /// Gives up the rows that are left, and the rest of this one.
    package func reset() {
        column = 0
        sqlite3_reset(handle)
    }

    // Reads without an index take the columns one after the other: all of them, in each row. A read that some rows go
    // without would give its column to the read behind it. Debug builds, and with them all tests, trap where a row is
    // left before its last column without `skipRest`.

    /// Ends the row whose columns were read one after the other.
    package func endRow() {
        assert(
            column == 0 || column >= sqlite3_column_count(handle),
            "the row ends at column \(column): \(String(cString: sqlite3_sql(handle)))")
        column = 0
    }

    /// Passes over a column.
    package func next() -> CInt {
        assert(
            column < sqlite3_column_count(handle),
            "there is no column \(column): \(String(cString: sqlite3_sql(handle)))")
        defer { column += 1 }
        return column
    }
    package func skip(_ count: CInt) { column += count }
    /// Leaves the rest of the row unread.
    package func skipRest() { column = .max }
    package func go(to column: CInt) { self.column = column }

    /// SQLite's number of the value's type.
    package func type(at column: CInt) -> CInt { sqlite3_column_type(handle, column) }
    package func isNull(at column: CInt) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }
    /// The number in a column that holds one in each row.
    ///
    /// - Throws: `StoreError.damaged` where there is NULL in it, which SQLite would read as zero.
    package func integer(at place: CInt? = nil) throws(StoreError) -> Int64 {
        let column = place ?? next()
        let number = sqlite3_column_int64(handle, column)
        if number == 0, isNull(at: column) {
            throw damage("\(name(of: column)) is missing")
        }
        return number
    }
    /// SQLite's name of a column, for messages.
    package func name(of column: CInt) -> String {
        sqlite3_column_name(handle, column).map { String(cString: $0) } ?? "a number"
    }
    /// The number in a column that may hold NULL, which is nil.
    package func optionalInteger(at place: CInt? = nil) -> Int64? {
        let column = place ?? next()
        return isNull(at: column) ? nil : sqlite3_column_int64(handle, column)
    }
    package func double(at place: CInt? = nil) -> Double {
        sqlite3_column_double(handle, place ?? next())
    }
    package func text(at place: CInt? = nil) -> String {
        let column = place ?? next()
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }
    package func optionalText(at place: CInt? = nil) -> String? {
        let column = place ?? next()
        return isNull(at: column) ? nil : text(at: column)
    }
    /// The bytes of a blob, valid until the next step.
    package func blob(at place: CInt? = nil) -> UnsafeRawBufferPointer {
        let column = place ?? next()
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(
            start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }
    package func optionalBytes(at place: CInt? = nil) -> [UInt8]? {
        let column = place ?? next()
        return isNull(at: column) ? nil : Array(blob(at: column))
    }
}

/// The number in the first row of an answer. No row, NULL, and any number, zero too, are three different results: NULL
/// for "nothing was pruned" was once read as the year 1970, and every store then counted as pruned.
package enum FirstInteger: Equatable {
    case noRow, null
    case value(Int64)

    /// The number, where a row without one and no row both mean that there is none.
    package var value: Int64? {
        guard case .value(let value) = self else { return nil }
        return value
    }
}

/// A value that can be bound to a question mark.
package protocol SQLValue {
    func bind(to statement: OpaquePointer, at index: CInt) -> CInt
    func combine(into checksum: inout RowChecksum)
}

/// Makes SQLite copy the bytes before the call returns (SQLITE_TRANSIENT, a cast in C).
private var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

extension Int64: SQLValue {
    package func combine(into checksum: inout RowChecksum) { checksum.combine(integer: self) }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        sqlite3_bind_int64(statement, index, self)
    }
}

extension Double: SQLValue {
    package func combine(into checksum: inout RowChecksum) { checksum.combine(bitPattern) }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        sqlite3_bind_double(statement, index, self)
    }
}

extension Bool: SQLValue {
    package func combine(into checksum: inout RowChecksum) {
        checksum.combine(integer: self ? 1 : 0)
    }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        sqlite3_bind_int64(statement, index, self ? 1 : 0)
    }
}

extension String: SQLValue {
    package func combine(into checksum: inout RowChecksum) {
        var text = self
        text.withUTF8 { checksum.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        sqlite3_bind_text64(
            statement, index, self, UInt64(utf8.count), copied, UInt8(SQLITE_UTF8))
    }
}

extension UniqueID: SQLValue {
    package func combine(into checksum: inout RowChecksum) {
        withBytes { checksum.combine(bytes: $0) }
    }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        withBytes {
            sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), copied)
        }
    }
}

extension [UInt8]: SQLValue {
    package func combine(into checksum: inout RowChecksum) {
        withUnsafeBytes { checksum.combine(bytes: $0) }
    }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        // An empty array may have no address, and SQLite takes no address for null.
        isEmpty
            ? sqlite3_bind_zeroblob(statement, index, 0)
            : sqlite3_bind_blob64(statement, index, self, UInt64(count), copied)
    }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    package func combine(into checksum: inout RowChecksum) {
        if let self { self.combine(into: &checksum) } else { checksum.combine(null: ()) }
    }
    package func bind(to statement: OpaquePointer, at index: CInt) -> CInt {
        self?.bind(to: statement, at: index) ?? sqlite3_bind_null(statement, index)
    }
}
