// Imports stores of ordinary size, many per transaction, each in a savepoint: all of one, or nothing.

internal import StallArchive
internal import StallModel
internal import StallStore

extension Ingest {
    /// A batch is one transaction: measured, 50 files in one take half the time of 50 transactions.
    /// With 200, roll-ups are half the work again, since one that many files add to is written once;
    /// the log grows to some 40 MB.
    private static let filesPerBatch = 200
    private static let reportsPerBatch = 200_000

    /// Imports the next files, until the batch is full, in one transaction.
    ///
    /// - Returns: The next store where it is too large for a batch.
    func importBatch(
        _ rest: inout ArraySlice<SourceFile>,
        from ahead: SourcePrefetcher, _ summary: inout IngestSummary,
        _ report: (IngestSummary) -> Void
    ) throws(StoreError) -> SourcePrefetcher.Answer? {
        try write { writer in
            let first = summary.files.count
            let reportLimit = importedCount + Self.reportsPerBatch
            while let source = rest.first, source.kind == .store, !source.isUnchanged,
                summary.files.count - first < Self.filesPerBatch,
                importedCount < reportLimit, let next = ahead.next(isCancelled),
                !stop.isSet
            {
                if case .success(let store) = next.store, store.isLarge { return next }
                let result = try take(next, from: ahead, writer)
                // A file that was cut short by a signal is imported by the next run.
                if case .skipped(.interrupted) = result.outcome { break }
                rest.removeFirst()
                importedCount += result.addedCount + result.changedCount
                summary.files.append(result)
                report(summary)
            }
            return nil
        }
    }

    /// Imports one store in a savepoint: all of it, or nothing.
    private func take(
        _ next: SourcePrefetcher.Answer, from ahead: SourcePrefetcher, _ writer: IngestWriter
    ) throws -> IngestFileResult {
        let path = next.path
        var mark: Int?
        var result = IngestFileResult(path: path, outcome: .taken(added: 0, changed: 0))
        do {
            let incoming = try next.store.get()
            defer { incoming.close() }
            incoming.budget.poll = isCancelled
            mark = writer.mark
            func takeAll(isStrict: Bool, apart: Set<Int64> = []) throws -> StoreTransfer {
                try file.connection.savepoint {
                    try incoming.use {
                        let transfer = try StoreTransfer(
                            incoming, writer, isStrict: isStrict, apart: apart)
                        _ = try transfer.importNext()
                        return transfer
                    }
                }
            }
            var transfer: StoreTransfer
            do { transfer = try takeAll(isStrict: false) } catch StoreError.sharedIdentity {
                // It is a copy that diverged, which the last numbers did not show.
                if let mark { try writer.rollBack(to: mark) }
                transfer = try takeAll(isStrict: true)
            }
            result.outcome = .taken(added: transfer.added, changed: transfer.changed)
            ahead.noteTaken(incoming)
            try finish(&result, next, transfer, writer)
            if !result.missing.sources.isEmpty {
                // A copy that diverged, which what is left of the other's rows does not show. Rows that are here are
                // not imported again.
                let rest = try takeAll(isStrict: true, apart: result.missing.sources)
                result.outcome = .taken(
                    added: transfer.added + rest.added, changed: transfer.changed + rest.changed)
                try finish(&result, next, rest, writer)
            }
        } catch let error as StoreError where error.path == path {
            // Nil where it could not even be opened.
            if let mark { try writer.rollBack(to: mark) }
            result.outcome = .skipped(error)
        }
        return result
    }

    /// Notes the facts of a store of which all was imported.
    func finish(
        _ result: inout IngestFileResult, _ next: SourcePrefetcher.Answer,
        _ transfer: StoreTransfer,
        _ writer: IngestWriter
    ) throws {
        if verifies {
            result.missing = try transfer.incoming.use {
                try writer.missingRows(transfer.incoming)
            }
        }
        guard result.missing.count == 0 else { return }
        result.finishedAs = next.state?.file
        // A report that is open ends with its process, which the file need not show.
        if !transfer.hasOpenReports { try note(result.path, next.state, writer) }
    }
}
