// Takes the reports of other stores over into a central store.
//
//     files -> batches, a transaction each -> files, a savepoint each -> IncomingStore -> rows
//
// What says how far a source was taken moves in the same transaction as its reports. So a job that
// is killed, runs twice, or runs beside another takes nothing twice and loses nothing.

internal import GRDB
package import StallModel

/// What became of one file that `ingest` was given or found.
package struct IngestFileResult: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// Reports that the central store did not have, and ones it had that have changed since.
        case taken(added: Int, changed: Int)
        /// Nothing of the file was taken over.
        case skipped(StoreError)
    }
    package var path: String
    package var outcome: Outcome
}

/// What one run of `ingest` did.
package struct IngestSummary: Hashable, Sendable {
    /// In the order they were taken.
    package var files: [IngestFileResult]

    package var addedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(let added, _) = file.outcome { sum + added } else { sum }
        }
    }
    package var changedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(_, let changed) = file.outcome { sum + changed } else { sum }
        }
    }
    package var skippedCount: Int {
        files.count { file in if case .skipped = file.outcome { true } else { false } }
    }
}

/// How far a run of `ingest` is.
package struct IngestProgress: Hashable, Sendable {
    package var filesDone: Int
    package var fileCount: Int
    package var reportsTaken: Int
}

/// Copies what is new in other stores into one central store.
package final class Ingest {
    private let file: StoreFile
    // Nil once closed: statements must go before their connection does.
    private var writer: IngestWriter?

    /// A batch is one transaction: measured, 50 files in one take half the time of 50 transactions,
    /// and more than that only makes the write-ahead log longer.
    private static let filesPerBatch = 50
    private static let reportsPerBatch = 50_000

    /// Opens the central store; creates or migrates it where needed. Its directory must exist.
    ///
    /// - Parameter grouper: Decides the reports' groups. Where the store is grouped by other rules,
    ///   the first batch groups all of it anew.
    package init(into path: String, grouper: any ReportGrouper) throws(StoreError) {
        let file = try StoreFile.openForWriting(
            path: path, role: .central, followsLinks: true, wait: .seconds(60))
        self.file = file
        writer = try StoreError.catching(path: path) {
            try file.queue.inDatabase { database in
                try database.execute(sql: "pragma cache_size = -65536")
                return try IngestWriter(Connection(database, path: path), grouper)
            }
        }
    }

    /// Takes over every store among the paths; directories are searched with all that is below
    /// them.
    ///
    /// A file that cannot be taken is skipped, whole, with its reason in the summary.
    ///
    /// - Throws: only what is wrong with the central store; the batches before it are kept.
    package func run(
        _ paths: [String], progress: (IngestProgress) -> Void = { _ in }
    ) throws(StoreError) -> IngestSummary {
        let found = SourceFiles(paths, except: FileFacts(file.path))
        var summary = IngestSummary(files: found.skipped)
        var rest = found.paths[...]
        while !rest.isEmpty {
            try takeBatch(&rest, &summary) { summary in
                progress(
                    IngestProgress(
                        filesDone: summary.files.count,
                        fileCount: found.paths.count + found.skipped.count,
                        reportsTaken: summary.addedCount + summary.changedCount))
            }
        }
        return summary
    }

    deinit { try? close() }

    /// Closes the central store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) {
        writer = nil
        try file.close()
    }

    /// Takes the next files, until the batch is full, in one transaction.
    private func takeBatch(
        _ rest: inout ArraySlice<String>, _ summary: inout IngestSummary,
        _ report: (IngestSummary) -> Void
    ) throws(StoreError) {
        guard let writer else { throw .cannotOpen(path: file.path, reason: "it was closed") }
        do {
            try file.queue.inDatabase { database in
                try database.inTransaction(.immediate) {
                    try writer.notice()
                    let first = summary.files.count
                    var reportCount = 0
                    while let path = rest.first, summary.files.count - first < Self.filesPerBatch,
                        reportCount < Self.reportsPerBatch
                    {
                        let outcome = try take(path, database, writer)
                        if case .taken(let added, let changed) = outcome {
                            reportCount += added + changed
                        }
                        rest.removeFirst()
                        summary.files.append(IngestFileResult(path: path, outcome: outcome))
                        report(summary)
                    }
                    try writer.flush()
                    return .commit
                }
            }
        } catch {
            try? writer.forget()
            throw StoreError(error, path: file.path)
        }
    }

    /// Takes one file in a savepoint: all of it, or nothing.
    private func take(
        _ path: String, _ database: Database, _ writer: IngestWriter
    ) throws -> IngestFileResult.Outcome {
        let mark = writer.mark
        do {
            var outcome = IngestFileResult.Outcome.taken(added: 0, changed: 0)
            try database.inSavepoint {
                outcome = try IncomingStore.read(path) { try writer.take($0) }
                return .commit
            }
            return outcome
        } catch let error as StoreError where error.path == path {
            try writer.rollBack(to: mark)
            return .skipped(error)
        }
    }
}
