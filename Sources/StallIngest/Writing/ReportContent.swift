// The order of records of one stall that came equally far, as two clones of a store may have them: one was copied before
// the cause was decided. By content alone: neither the order of import nor a store's numbers may decide. Records that know
// equally much are ordered by a hash of everything that is stored of them, so that no field is forgotten.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Compares records of one stall. Works within the transaction of its caller.
struct ReportContent {
    private let find, findStack, findLoop, findLabel, findEvidence: Statement

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            "select \(ReportRow.selected()) from report where source = ? and seq = ?")
        findStack = try connection.prepare("select hash from stack where id = ?")
        findLoop = try connection.prepare("select name, threshold_ns from loop where id = ?")
        findLabel = try connection.prepare("select value from label where id = ?")
        findEvidence = try connection.prepare("select hash from evidence where id = ?")
    }

    /// Whether a row that is about to be written has more than the stored one of a number.
    func isMore(_ row: ReportRow, thanOf source: Int64, seq: Int64) throws -> Bool {
        try find.bind(source, seq)
        guard try find.step() else { return true }
        var stored = try ReportRow(find)
        try stored.readCause(find)
        find.reset()
        let (known, new) = try (values(of: stored), values(of: row))
        guard known == new else { return known.lexicographicallyPrecedes(new) }
        return try digest(of: stored) < digest(of: row)
    }

    /// Numbers that are the same in every store and grow with what is known, the most important first.
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

    /// Of the row with the content of other rows instead of their numbers.
    private func digest(of row: ReportRow) throws -> UInt64 {
        var row = row
        (row.seq, row.revision) = (0, 0)
        row.loop = try hash(ofLoop: row.loop)
        row.mode = try hash(ofLabel: row.mode)
        row.activity = try row.activity.map(hash(ofLabel:))
        for index in row.samples.indices {
            row.samples[index].stack = try row.samples[index].stack.map(hash(ofStack:))
        }
        for index in row.threads.indices {
            row.threads[index].stack = try row.threads[index].stack.map(hash(ofStack:))
        }
        row.evidence = try evidence(of: row)
        return row.digest
    }

    /// Where it is written as one that reports share, with the hash of the shared part as its number.
    private func evidence(of row: ReportRow) throws -> SharedEvidence? {
        if var shared = row.evidence {
            shared.id = try findEvidence.found(shared.id) ?? 0
            return shared
        }
        // As text it is in rows of older programs, and beyond the limit of shared ones.
        guard let cause = row.cause,
            let split = cause.detail.withUnsafeBytes({
                SplitEvidence(detail: $0, of: cause.cause)
            }),
            let facts = [EvidenceFact](packed: split.formats)
        else { return nil }
        return SharedEvidence(id: facts.hash, numbers: split.numbers, detail: split.remainder)
    }

    private func hash(ofLoop id: Int64) throws -> Int64 {
        try findLoop.bind(id)
        defer { findLoop.reset() }
        var hash = ContentHash()
        if try findLoop.step() {
            hash.combine(findLoop.text())
            hash.combine(UInt64(bitPattern: try findLoop.integer()))
        }
        return hash.value
    }

    private func hash(ofLabel id: Int64) throws -> Int64 {
        try findLabel.bind(id)
        defer { findLabel.reset() }
        var hash = ContentHash()
        if try findLabel.step() { hash.combine(findLabel.text()) }
        return hash.value
    }

    /// Not negative, as a number in a row.
    private func hash(ofStack id: Int64) throws -> Int64 { try (findStack.found(id) ?? 0) & .max }
}
