// Imports pushed batches. The position is the one that `ingest` keeps of the same store: a store may be pushed today
// and ingested as a file tomorrow, and nothing is imported twice.

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
    /// - Throws: A failure of the central store: a full disk, a lock that lasts. Nothing of the batch is stored then,
    ///   and the sender may try again.
    package func take(_ batch: PushedBatch) throws(StoreError) -> PushedBatchResult {
        switch batch.read() {
        case .failure(let refused): return refused.result
        case .success(let rows): return try takeAlone(rows)
        }
    }

    /// Imports batches, in order, in one transaction: the cost of a commit, and of each roll-up that several of them
    /// add to, is paid once. A refused batch changes nothing, also not the others. Returns after the commit.
    ///
    /// - Returns: The outcome of each, in order. Where the transaction fails because of its content, each batch gets a
    ///   transaction of its own: the failure of one must not keep the others out.
    package func take(_ batches: [PushedBatch]) -> [Result<PushedBatchResult, StoreError>] {
        let read = batches.map { $0.read() }
        func alone(_ rows: PushedRows) -> Result<PushedBatchResult, StoreError> {
            Result { () throws(StoreError) in try takeAlone(rows) }
        }
        guard read.count(where: \.isWhole) > 1 else {
            return read.map { $0.result(alone) }
        }
        do throws(StoreError) {
            return try write { writer in
                try read.map { batch in
                    try batch.result { .success(try takeInSavepoint($0, writer)) }
                }
            }
        } catch {
            return read.map { batch in
                batch.result { error.isOfTheDisk ? .failure(error) : alone($0) }
            }
        }
    }

    /// Takes the store's lock for writing, and gives it back: throws the error that a batch would run into.
    package func probe() throws(StoreError) { try write { _ in } }

    private func takeAlone(_ rows: PushedRows) throws(StoreError) -> PushedBatchResult {
        var refused: RefusedBatch?
        do throws(StoreError) {
            return try write { writer in
                do { return try rows.take(writer) } catch let fault as RefusedBatch {
                    refused = fault
                    throw fault
                }
            }
        } catch {
            guard let refused else { throw error }
            return refused.result
        }
    }

    private func takeInSavepoint(
        _ rows: PushedRows, _ writer: IngestWriter
    ) throws -> PushedBatchResult {
        let mark = writer.mark
        do {
            return try file.connection.savepoint {
                let result = try rows.take(writer)
                // Rows that are noted and not written would be forgotten with the next batch that is refused.
                try writer.flushRows()
                return result
            }
        } catch let refused as RefusedBatch {
            try writer.rollBack(to: mark)
            return refused.result
        }
    }
}

extension StoreError {
    /// Whatever is written now fails.
    fileprivate var isOfTheDisk: Bool {
        switch self {
        case .busy, .full, .readOnly, .moved, .cannotOpen, .descriptorsClosed: true
        default: false
        }
    }
}

extension Result<PushedRows, RefusedBatch> {
    fileprivate var isWhole: Bool { if case .success = self { true } else { false } }

    fileprivate func result(
        _ take: (PushedRows) throws -> Result<PushedBatchResult, StoreError>
    ) rethrows -> Result<PushedBatchResult, StoreError> {
        switch self {
        case .success(let rows): try take(rows)
        case .failure(let refused): .success(refused.result)
        }
    }
}
