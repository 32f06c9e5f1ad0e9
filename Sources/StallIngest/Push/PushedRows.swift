// The rows of a batch that was read and is whole, on their way into the store.

internal import StallModel
internal import StallQuery
internal import StallStore

/// A batch in memory. Reading comes before the transaction: the store is locked for the rows only, not for the parsing.
struct PushedRows {
    let store: UniqueID
    let from, through: Int64
    fileprivate(set) var rows: [(line: Int, row: PortableRow)] = []
    /// Lines of kinds or versions that this program does not know, by their `schema`.
    fileprivate(set) var unknown: [String: Int] = [:]

    /// Takes them, with the position that they leave. Works within the transaction of its caller.
    ///
    /// - Throws: `RefusedBatch` where lines cannot be imported: the caller rolls back.
    func take(_ writer: IngestWriter) throws -> PushedBatchResult {
        let position = try writer.positions.position(of: store)
        guard from <= position.through + 1 else { return .gap(through: position.through) }
        var taken = PushedBatchResult.Taken(through: max(position.through, through))
        taken.unknown = unknown
        var refused = RefusedBatch()
        for (line, row) in rows {
            do {
                switch try writer.take(row, isCounted: false) {
                case .added: taken.added += 1
                case .changed: taken.changed += 1
                case .leftOut:
                    // Only rows that are stored or counted are acknowledged.
                    throw LineFault(
                        line: line,
                        reason: "began in a time that was pruned, and may have been here")
                case .pruned, nil: break
                }
            } catch let fault as LineFault {
                refused.note(LineFault(line: line, reason: fault.reason))
            }
        }
        guard refused.isEmpty else { throw refused }
        try writer.positions.cover(store, through: through)
        return .taken(taken)
    }
}

/// Lines that cannot be taken, and with them the batch.
struct RefusedBatch: Error {
    private var lines: [LineFault] = []
    private var count = 0

    var isEmpty: Bool { count == 0 }
    var result: PushedBatchResult { .refused(.init(lines: lines, count: count)) }

    mutating func note(_ fault: LineFault) {
        count += 1
        if lines.count < PushedBatchResult.Refused.namedLimit { lines.append(fault) }
    }
}

extension PushedBatch {
    /// Reads the rows.
    func read() -> Result<PushedRows, RefusedBatch> {
        var read = PushedRows(store: store, from: from, through: through)
        var refused = RefusedBatch()
        guard hasValidRange else {
            refused.note(LineFault(line: 0, reason: "covers revisions out of range"))
            return .failure(refused)
        }
        var feed = rows
        while !feed.hasFailed {
            do throws(LineFault) {
                guard let row = try feed.next() else { break }
                if case .unknown(let schema) = row {
                    read.unknown.noteUnknown(schema)
                    continue
                }
                guard row.store == store else {
                    refused.note(LineFault(line: feed.lineNumber, reason: "is not of the store"))
                    continue
                }
                read.rows.append((feed.lineNumber, row))
            } catch { refused.note(error) }
        }
        return refused.isEmpty ? .success(read) : .failure(refused)
    }

    private var hasValidRange: Bool {
        let range = 1...ValueLimits.revision
        return range.contains(from) && through >= from - 1 && through <= ValueLimits.revision
    }
}
