// Imports a large store in parts, one transaction per part, so that no other job waits for all of it, the log stays
// short, and a job that is killed continues where it was.

internal import StallArchive
internal import StallModel
internal import StallStore

extension Ingest {
    /// Imports one store in parts.
    ///
    /// - Returns: Nil when it was interrupted before anything was imported.
    func importParts(
        of next: SourcePrefetcher.Answer, from ahead: SourcePrefetcher, _ report: () -> Void
    ) throws(StoreError) -> IngestFileResult? {
        let path = next.path
        var result = IngestFileResult(path: path, outcome: .taken(added: 0, changed: 0))
        // The reports that were committed.
        var (imported, hasPart) = (ImportedCount(), false)
        do throws(StoreError) {
            let incoming = try next.store.get()
            defer { incoming.close() }
            incoming.budget.poll = isCancelled
            var transfer = try self.transfer(incoming, isStrict: false)
            var before = ImportedCount()
            var isAtEnd = false
            while !isAtEnd {
                do throws(StoreError) {
                    isAtEnd = try importPart(of: transfer, next, &result)
                } catch {
                    guard case .sharedIdentity = error, !transfer.isStrict else { throw error }
                    // It is a copy that diverged, which the last numbers did not show.
                    transfer = try self.transfer(incoming, isStrict: true)
                    before = imported
                    continue
                }
                let old = imported
                imported.added = before.added + transfer.added
                imported.changed = before.changed + transfer.changed
                importedCount += imported.sum - old.sum
                if isAtEnd, !result.missing.sources.isEmpty, transfer.apart.isEmpty {
                    // As with small stores.
                    transfer = try self.transfer(
                        incoming, isStrict: true, apart: result.missing.sources)
                    before = imported
                    isAtEnd = false
                }
                if !isAtEnd {
                    hasPart = true
                    report()
                }
            }
            ahead.noteTaken(incoming)
        } catch {
            guard error.path == path else { throw error }
            if hasPart { result.partial = imported }
            result.outcome = .skipped(error)
            if case .interrupted = error {
                // The next run continues with it.
                guard result.partial != nil else { return nil }
                result.outcome = .taken(added: imported.added, changed: imported.changed)
            }
            return result
        }
        result.outcome = .taken(added: imported.added, changed: imported.changed)
        return result
    }

    private func transfer(
        _ incoming: IncomingStore, isStrict: Bool, apart: Set<Int64> = []
    ) throws(StoreError) -> StoreTransfer {
        let writer = try writer()
        return try incoming.use {
            try StoreTransfer(incoming, writer, isStrict: isStrict, apart: apart)
        }
    }

    /// - Returns: Whether it was the last one.
    private func importPart(
        of transfer: StoreTransfer, _ next: SourcePrefetcher.Answer,
        _ result: inout IngestFileResult
    ) throws(StoreError) -> Bool {
        try write { writer in
            if writer.hasForgotten { transfer.forget() }
            let isAtEnd = try transfer.incoming.use { try transfer.importNext(limit: partLimit) }
            if isAtEnd { try finish(&result, next, transfer, writer) }
            return isAtEnd
        }
    }
}
