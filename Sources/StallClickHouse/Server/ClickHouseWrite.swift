// Statements that write, sent at once: to start a process of curl takes longer than many an insert, and shards need not
// wait for each other.

/// A write to a server.
struct ClickHouseWrite {
    let server: ClickHouseServer
    let statement: String
    /// Rows; nil where the statement is all.
    let rows: [UInt8]?

    /// Inserts rows.
    ///
    /// - Parameters:
    ///   - table: `report (id, start_us)`: the table and its columns.
    ///   - rows: As `TabSeparatedWriter` has them.
    init(_ rows: [UInt8], into table: ClickHouseQuery, of server: ClickHouseServer) {
        (self.server, self.rows) = (server, rows)
        statement = "insert into \(table.sql) format TabSeparated"
    }

    /// Runs a statement that answers nothing.
    init(_ statement: ClickHouseQuery, on server: ClickHouseServer) {
        (self.server, self.statement, rows) = (server, statement.sql, nil)
    }

    /// How many are sent at once.
    static let togetherLimit = 12

    /// Sends each once, and waits for all of them. When it fails, none, some or all of them may have been done.
    static func send(_ writes: [ClickHouseWrite]) throws(ClickHouseError) {
        for start in stride(from: 0, to: writes.count, by: togetherLimit) {
            let part = writes[start...].prefix(togetherLimit)
            guard let server = part.first?.server else { return }
            try server.send(together: Array(part))
        }
    }
}
