// The order of records of one stall that came equally far, as two clones of a store may have them: one was copied before
// the cause was decided. By content alone: neither the order of import nor a store's numbers may decide.

internal import StallModel
internal import StallStore

/// Compares records of one stall. Works within the transaction of its caller.
struct ReportContent {
    private let find, findStack: Statement

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            "select \(ReportRow.selected()) from report where source = ? and seq = ?")
        findStack = try connection.prepare("select hash from stack where id = ?")
    }

    /// Whether a row that is about to be written has more than the stored one of a number.
    func isMore(_ row: ReportRow, thanOf source: Int64, seq: Int64) throws -> Bool {
        try find.bind(source, seq)
        guard try find.step() else { return true }
        var stored = try ReportRow(find)
        try stored.readCause(find)
        find.reset()
        return try values(of: stored).lexicographicallyPrecedes(values(of: row))
    }

    /// Numbers that are the same in every store, the most important first.
    private func values(of row: ReportRow) throws -> [Int64] {
        let cause = row.cause
        var values = [
            Int64(cause.map { Int($0.cause.rawValue) } ?? -1),
            Int64(bitPattern: cause?.confidence.bitPattern ?? 0),
            Int64(row.samples.count), Int64(row.threads.count), row.cpu_ns, row.delayed_ns,
            row.outcome.ending.map { Int64($0.rawValue) } ?? 0, Int64(row.verdict.rawValue),
            Int64(row.phase.rawValue), row.start_us, row.agent_ns,
        ]
        for sample in row.samples {
            values += [sample.offset_ns, sample.weight_ns ?? -1, Int64(sample.thread)]
            values.append(try sample.stack.flatMap { try findStack.found($0) } ?? 0)
        }
        return values
    }
}
