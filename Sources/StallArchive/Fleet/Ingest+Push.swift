// Takes what a sender pushes. The position is the one that `ingest` keeps of the same store: a store may be pushed today
// and ingested as a file tomorrow, and nothing is taken twice.

package import StallModel
package import StallStore

extension Ingest {
    /// How far a store was taken, by pushes and by `ingest` of its file.
    package func position(of store: UniqueID) throws(StoreError) -> PushedPosition {
        let writer = try writer()
        return try StoreError.catching(path: file.path) { try writer.positions.position(of: store) }
    }

    /// Takes a batch in one transaction, with the position that it leaves. Any batch may come again, late or twice:
    /// a row is taken once, and of two states of it the later one stands.
    ///
    /// - Throws: What is wrong with the central store: a full disk, a lock that lasts. Nothing of the batch is stored
    ///   then, and the sender may try again.
    package func take(_ batch: PushedBatch) throws(StoreError) -> PushedBatchResult {
        if let fault = batch.fault { return .refused(.init(lines: [fault], count: 1)) }
        // Reading first: the store is locked for the rows only, not for the parsing.
        var (rows, refused) = ([(line: Int, row: PortableRow)](), [LineFault]())
        var (feed, count, unknown) = (batch.rows, 0, [String: Int]())
        func refuse(_ fault: LineFault) {
            count += 1
            if refused.count < PushedBatchResult.Refused.namedLimit { refused.append(fault) }
        }
        while !feed.hasFailed {
            do throws(LineFault) {
                guard let row = try feed.next() else { break }
                if case .unknown(let schema) = row {
                    unknown.noteUnknown(schema)
                    continue
                }
                guard row.store == batch.store else {
                    refuse(LineFault(line: feed.lineNumber, reason: "is not of the store"))
                    continue
                }
                rows.append((feed.lineNumber, row))
            } catch { refuse(error) }
        }
        if count > 0 { return .refused(.init(lines: refused, count: count)) }
        do throws(StoreError) {
            return try write { writer in
                let position = try writer.positions.position(of: batch.store)
                guard batch.from <= position.through + 1 else {
                    return .gap(through: position.through)
                }
                var taken = PushedBatchResult.Taken(through: max(position.through, batch.through))
                taken.unknown = unknown
                for (line, row) in rows {
                    do {
                        switch try writer.take(row, isCounted: false) {
                        case .added: taken.added += 1
                        case .changed: taken.changed += 1
                        case nil: break
                        }
                    } catch let fault as LineFault {
                        refuse(LineFault(line: line, reason: fault.reason))
                    }
                }
                if count > 0 { throw RefusedBatch() }
                try writer.positions.cover(batch.store, through: batch.through)
                return .taken(taken)
            }
        } catch {
            guard count > 0 else { throw error }
            return .refused(.init(lines: refused, count: count))
        }
    }
}

/// Rolls a transaction back.
private struct RefusedBatch: Error {}

extension PushedBatch {
    /// What is wrong with the positions.
    var fault: LineFault? {
        let range = 1...ValueLimits.revision
        guard range.contains(from), through >= from - 1, through <= ValueLimits.revision else {
            return LineFault(line: 0, reason: "covers revisions out of range")
        }
        return nil
    }
}
