// Takes the reports of other stores over into a central store.
//
//     files -> SourcePrefetcher, on other threads -> batches, a transaction each -> files, a savepoint each -> rows
//
// What says how far a source was taken moves in the same transaction as its reports. So a job that
// is killed, runs twice, or runs beside another takes nothing twice and loses nothing.

internal import CSQLite
package import StallModel
package import StallStore

/// Copies what is new in other stores into one central store.
package final class Ingest {
    private let file: StoreFile
    private let stop = StopFlag()
    private var verifies = false
    private var isCancelled: () -> Bool = { false }
    // Nil once closed: statements must go before their connection does.
    private var writer: IngestWriter?

    /// A batch is one transaction: measured, 50 files in one take half the time of 50 transactions.
    /// With 200, roll-ups are half the work again, since one that many files add to is written once;
    /// the log grows to some 40 MB.
    private static let filesPerBatch = 200
    private static let reportsPerBatch = 200_000

    /// Tells SQLite that its threads need not agree on how much memory they use. Call it before any
    /// store is opened, and only in a program of our own: it holds for the whole process.
    package static func prepareProcess() { _ = stall_sqlite_without_memory_statistics() }

    /// Opens the central store; creates or migrates it where needed. Its directory must exist.
    ///
    /// - Parameters:
    ///   - grouper: Decides the reports' groups. Where the store is grouped by other rules, the first
    ///     batch regroups all of it.
    ///   - changeLimit: How many changes of roll-ups are held in memory.
    package init(
        into path: String, grouper: any ReportGrouper, changeLimit: Int = 500_000
    ) throws(StoreError) {
        let file = try StoreFile.openForWriting(
            path: path, role: .central, followsLinks: true, wait: .seconds(60))
        self.file = file
        let connection = file.connection
        try connection.execute("pragma cache_size = -65536")
        writer = try StoreError.catching(path: path) {
            try IngestWriter(connection, Grouping(connection, grouper, changeLimit: changeLimit))
        }
    }

    /// Takes over every store and every file of lines among the paths; directories are searched with
    /// all that is below them.
    ///
    /// A store that cannot be taken is skipped, whole, with its reason in the summary. Of a file of
    /// lines all good lines are taken.
    ///
    /// - Parameters:
    ///   - lines: Opens a file of lines; `-` is standard input. Nil refuses such files.
    ///   - verifies: Compares what each store says it holds with what was taken, as is needed before it may go.
    ///   - isQuarantined: Files of which nothing is even tried.
    ///   - isCancelled: Asked between batches and now and then in a long file; what was taken until
    ///     then is kept.
    /// - Throws: only what is wrong with the central store; the batches before it are kept.
    package func run(
        _ paths: [String],
        lines: ((_ path: String) throws(StoreError) -> any ReportFeed)? = nil,
        verifies: Bool = false,
        isCancelled: @escaping () -> Bool = { false },
        isQuarantined: (_ path: String) -> Bool = { _ in false },
        progress: (IngestProgress) -> Void = { _ in }
    ) throws(StoreError) -> IngestSummary {
        let found = SourceFiles(paths, except: FileFacts(file.path))
        var summary = IngestSummary(files: found.skipped.filter { !isQuarantined($0.path) })
        var rest = found.files.filter { !isQuarantined($0.path) }[...]
        summary.quarantinedCount =
            found.files.count + found.skipped.count - rest.count - summary.files.count
        let ahead = SourcePrefetcher(
            rest.filter { $0.kind == .store }.map(\.path), known: try knownRevisions(), stop: stop)
        self.verifies = verifies
        self.isCancelled = isCancelled
        defer { self.isCancelled = { false } }
        while let next = rest.first {
            if isCancelled() {
                summary.isCancelled = true
                break
            }
            func report(_ summary: IngestSummary) {
                progress(
                    IngestProgress(
                        filesDone: summary.files.count,
                        fileCount: found.files.count + found.skipped.count,
                        reportsImported: summary.addedCount + summary.changedCount))
            }
            if next.kind == .lines {
                rest.removeFirst()
                let result = try importLines(next.path, lines, isCancelled)
                summary.isCancelled = result.isCancelled
                summary.files.append(result.file)
                report(summary)
            } else {
                try importBatch(&rest, from: ahead, &summary, report)
                summary.isCancelled = summary.isCancelled || stop.isSet
            }
            if stop.isSet { break }
        }
        return summary
    }

    deinit { try? close() }

    /// Closes the central store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) {
        writer = nil
        try file.close()
    }

    private func knownRevisions() throws(StoreError) -> [UniqueID: Int64] {
        guard let writer else { throw .cannotOpen(path: file.path, reason: "already closed") }
        return try StoreError.catching(path: file.path) {
            try writer.knownRevisions()
        }
    }

    /// Takes the next files, until the batch is full, in one transaction.
    private func importBatch(
        _ rest: inout ArraySlice<(path: String, kind: SourceFiles.Kind)>,
        from ahead: SourcePrefetcher, _ summary: inout IngestSummary,
        _ report: (IngestSummary) -> Void
    ) throws(StoreError) {
        guard let writer else { throw .cannotOpen(path: file.path, reason: "already closed") }
        do {
            try file.connection.transaction(.immediate) {
                try writer.notice()
                let first = summary.files.count
                var reportCount = 0
                while rest.first?.kind == .store,
                    summary.files.count - first < Self.filesPerBatch,
                    reportCount < Self.reportsPerBatch, let next = ahead.next(isCancelled),
                    !stop.isSet
                {
                    let result = try take(next, from: ahead, writer)
                    // What was cut short by a signal is taken by the next run.
                    if case .skipped(.interrupted) = result.outcome { break }
                    let outcome = result.outcome
                    if case .taken(let added, let changed) = outcome {
                        reportCount += added + changed
                    }
                    rest.removeFirst()
                    summary.files.append(result)
                    report(summary)
                }
                try writer.flush()
            }
        } catch {
            try? writer.forget()
            throw error
        }
    }

    /// Takes one store in a savepoint: all of it, or nothing.
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
            mark = try writer.mark(before: incoming)
            func takeAll(isStrict: Bool) throws {
                result.outcome = try file.connection.savepoint {
                    try incoming.use { try writer.take(incoming, isStrict: isStrict) }
                }
            }
            do { try takeAll(isStrict: false) } catch StoreError.sharedIdentity {
                // It is a copy that went its own way, which the last numbers did not tell.
                if let mark { try writer.rollBack(to: mark) }
                try takeAll(isStrict: true)
            }
            ahead.noteTaken(incoming)
            if verifies {
                result.missingCount = try incoming.use { try writer.missingCount(incoming) }
            }
        } catch let error as StoreError where error.path == path {
            // Nil where it could not even be opened.
            if let mark { try writer.rollBack(to: mark) }
            result.outcome = .skipped(error)
            return result
        }
        if result.missingCount == 0 { result.finishedAs = next.facts }
        return result
    }

    /// Takes the reports of a file of lines, in as many transactions as it takes.
    private func importLines(
        _ path: String, _ open: ((String) throws(StoreError) -> any ReportFeed)?,
        _ isCancelled: () -> Bool
    ) throws(StoreError) -> (file: IngestFileResult, isCancelled: Bool) {
        var result = IngestFileResult(path: path, outcome: .taken(added: 0, changed: 0))
        let before = FileFacts(path)
        var feed: any ReportFeed
        do throws(StoreError) {
            guard let open else { throw .notADatabase(path: path) }
            feed = try open(path)
        } catch {
            result.outcome = .skipped(error)
            return (result, false)
        }
        var counts = (added: 0, changed: 0)
        while true {
            let isAtEnd = try importLineBatch(&feed, &counts, &result)
            result.outcome = .taken(added: counts.added, changed: counts.changed)
            // Asked first: what tells it to stop ends the reading too.
            if isCancelled() { return (result, true) }
            if isAtEnd { break }
        }
        if result.lineFaultCount == 0 { result.finishedAs = before }
        return (result, false)
    }

    /// - Returns: Whether the file is at its end.
    private func importLineBatch(
        _ feed: inout any ReportFeed, _ counts: inout (added: Int, changed: Int),
        _ result: inout IngestFileResult
    ) throws(StoreError) -> Bool {
        guard let writer else { throw .cannotOpen(path: file.path, reason: "already closed") }
        // Reading may wait for the writer of the pipe, which must not hold up other jobs.
        var batch: [(line: Int, report: PortableReport)] = []
        var isAtEnd = false
        let start = feed.byteCount
        while batch.count < Self.linesPerBatch, feed.byteCount - start < Self.lineBytesPerBatch {
            do throws(LineFault) {
                guard let report = try feed.next() else {
                    isAtEnd = true
                    break
                }
                batch.append((feed.lineNumber, report))
            } catch {
                result.note(error)
                if feed.hasFailed {
                    isAtEnd = true
                    break
                }
            }
        }
        guard !batch.isEmpty else { return isAtEnd }
        do {
            try file.connection.transaction(.immediate) {
                try writer.notice()
                for (line, report) in batch {
                    do {
                        switch try writer.take(report) {
                        case .added: counts.added += 1
                        case .changed: counts.changed += 1
                        case nil: break
                        }
                    } catch let fault as LineFault {
                        result.note(LineFault(line: line, reason: fault.reason))
                    }
                }
                try writer.flush()
            }
        } catch {
            try? writer.forget()
            throw error
        }
        return isAtEnd
    }

    private static let linesPerBatch = 10_000
    private static let lineBytesPerBatch = 16 << 20
}
