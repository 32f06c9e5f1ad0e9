// Millions of stalls with the numbers of their stacks, read part by part from what a cluster answers: to put each into a store in
// memory first would take most of the time.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads stalls one by one. The stacks of one are there until the next.
struct StallRows {
    let server: ClickHouseServer
    let reports: ReportExcerpt
    private(set) var stacks = SampleStacks()
    /// Those of the current row's stacks.
    private var numbers: [Int64] = []

    /// The rows of a part, some ten megabytes.
    static let sliceSize = 250_000

    init(_ server: ClickHouseServer, _ reports: ReportExcerpt) {
        (self.server, self.reports) = (server, reports)
    }

    /// Calls `body` with the row of each report.
    ///
    /// - Parameter columns: Of the table of reports.
    mutating func forEach(
        _ conditions: ReportConditions, _ columns: ClickHouseQuery, columnCount: Int,
        _ body: (inout StallRows, TabSeparatedRows) throws -> Void
    ) throws {
        try ReportSlices(
            server: server, conditions: conditions, order: .stored, size: Self.sliceSize
        ).forEach { part in
            var rows = try server.rows(
                "select \(columns) from \(part.reports(server))", columnCount: columnCount)
            while try rows.step() { try body(&self, rows) }
            return true
        }
    }

    /// How long it lasted; not below zero.
    func duration_ns(_ row: TabSeparatedRows) throws -> Int64 {
        let duration: Int64 = try row.integer()
        guard duration >= 0 else { throw row.bad("a duration") }
        return duration
    }

    /// The part of a duration that was not the thread's own.
    func delayed_ns(_ row: TabSeparatedRows, in duration_ns: Int64) throws -> Int64 {
        let delayed: Int64 = try row.integer()
        guard 0...duration_ns ~= delayed else { throw row.bad("a part of the duration") }
        return delayed
    }

    /// Reads a column of stacks, and behind it that of the samples which they are of.
    mutating func readStacks(_ row: TabSeparatedRows, in duration_ns: Int64) throws {
        try readNumbers(row)
        let isRead = try row.bytes().withUnsafeBytes { bytes in
            stacks.read(bytes, in: duration_ns) { [numbers] index in
                numbers.indices.contains(Int(truncatingIfNeeded: index)) && index >= 0
                    ? numbers[Int(index)] : nil
            }
        }
        guard isRead else { throw row.bad("a list of samples of these stacks") }
    }

    /// The same columns as the summary of a report has them.
    mutating func weightedStacks(
        _ row: TabSeparatedRows, in duration_ns: Int64
    ) throws -> [WeightedStack] {
        try readNumbers(row)
        let samples = try row.bytes().withUnsafeBytes { [StoredSample](encoded: $0) }
        guard let samples else { throw row.bad("a list of samples") }
        return try zip(samples, samples.weights(in: duration_ns)).compactMap { sample, weight in
            guard let index = sample.stack, !sample.isLate else { return nil }
            guard index >= 0, index < Int64(numbers.count) else {
                throw row.bad("numbers of its stacks")
            }
            return WeightedStack(stack: numbers[Int(index)], weight: .nanoseconds(weight))
        }
    }

    private mutating func readNumbers(_ row: TabSeparatedRows) throws {
        try row.readIntegers(at: row.next(), into: &numbers)
        for index in numbers.indices {
            numbers[index] = reports.stacks.number(of: numbers[index]).0
        }
    }
}
