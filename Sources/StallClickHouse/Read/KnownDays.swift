// The days that a question finds in roll-ups. StallClickHouse/Write/RollUpDays.swift keeps the rows.

/// The days that have reports, and those of them that have roll-ups.
struct KnownDays {
    /// All days with reports or roll-ups, oldest first.
    private(set) var all: [Int64] = []
    /// Those whose roll-ups are not those of all their reports.
    private(set) var stale: [Int64] = []

    /// No days.
    init() {}

    static let question: ClickHouseQuery =
        "select day, is_fresh from rollup_day final order by day"

    init(_ server: ClickHouseServer) throws {
        var rows = try server.rows(Self.question, columnCount: 2)
        while try rows.step() {
            let day = try rows.day()
            all.append(day)
            if try rows.integer(as: UInt8.self) == 0 { stale.append(day) }
        }
    }
}
