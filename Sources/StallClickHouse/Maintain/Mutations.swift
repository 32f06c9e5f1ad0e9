// A server deletes rows when it finds the time for it, long after it took the statement.

/// The deletions of a server that are under way.
struct Mutations {
    private let server: ClickHouseServer
    private let pause: (Double) -> Void
    /// Seconds, in sum ten minutes.
    private static let pauses = [0.05, 0.1, 0.2, 0.4, 1] + Array(repeating: 2.0, count: 300)

    init(_ server: ClickHouseServer, _ pause: @escaping (Double) -> Void) {
        (self.server, self.pause) = (server, pause)
    }

    /// Waits until all rows of a table are gone that were to be deleted.
    func wait(for table: ClickHouseQuery) throws(ClickHouseError) {
        for seconds in Self.pauses {
            guard try areLeft(of: table) else { return }
            pause(seconds)
        }
        throw .badAnswer(
            store: server.name, detail: "rows of \(table.sql) are not deleted after ten minutes")
    }

    private func areLeft(of table: ClickHouseQuery) throws(ClickHouseError) -> Bool {
        var rows = try server.rows(
            """
            select count() from system.mutations
            where database = \(server.address.database) and table = \(table.sql) and is_done = 0
            """, columnCount: 1)
        return try rows.step() ? try rows.integer() > 0 : false
    }
}
