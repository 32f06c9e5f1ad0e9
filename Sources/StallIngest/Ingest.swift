// Imports the reports of other stores into a central store.
//
//     files -> as they were? -> SourcePrefetcher, on other threads
//         -> batches, one transaction per batch -> files, one savepoint per file
//         -> parts of a large store, one transaction per part
//
// The position up to which a source was imported moves in the same transaction as its reports. So a job that is killed,
// runs twice, or runs beside another imports nothing twice and loses nothing.

internal import CSQLite
internal import StallArchive
package import StallModel
package import StallQuery
package import StallStore

/// Copies the new reports of other stores into one central store.
package final class Ingest {
    let file: StoreFile
    private var place: StorePlace
    let stop = StopFlag()
    var verifies = false
    var isCancelled: () -> Bool = { false }
    // Nil once closed: statements must go before their connection does.
    private var openWriter: IngestWriter?
    let partLimit: Int
    let clock: () -> UnixTime
    /// The reports that this run imported, so that each file need not add up all before it.
    var importedCount = 0

    /// Turns off SQLite's memory statistics, on which its threads would have to agree. Call it before any store is
    /// opened, and only in a program of our own: it holds for the whole process.
    package static func prepareProcess() { _ = stall_sqlite_without_memory_statistics() }

    /// Opens the central store; creates or migrates it where needed. Its directory must exist.
    ///
    /// - Parameters:
    ///   - grouper: Decides the reports' groups. Where the store is grouped by other rules, the first
    ///     batch regroups all of it.
    ///   - changeLimit: How many changes of roll-ups are held in memory.
    ///   - partLimit: A store with more new reports than are read ahead is imported in parts of about this many
    ///     reports, one transaction per part.
    ///   - holdsOnlyNews: The store begins with the positions of sources whose reports are elsewhere. Copies of a store
    ///     that diverged are then distinguished only among the sources of one run. Roll-ups are kept elsewhere, too.
    ///   - clock: The time that files' ages are compared with.
    package init(
        into path: String, grouper: any ReportGrouper, changeLimit: Int = 500_000,
        partLimit: Int = 50_000, holdsOnlyNews: Bool = false,
        clock: @escaping () -> UnixTime = { UnixTime.now() }
    ) throws(StoreError) {
        let file = try StoreFile.openForWriting(
            path: path, role: .central, followsLinks: true, wait: .seconds(60))
        self.file = file
        place = StorePlace(of: file)
        self.partLimit = partLimit
        self.clock = clock
        let connection = file.connection
        try connection.execute("pragma cache_size = -65536")
        openWriter = try StoreError.catching(path: path) {
            try IngestWriter(connection, Grouping(connection, grouper, changeLimit: changeLimit))
        }
        openWriter?.families.holdsOnlyNews = holdsOnlyNews
        openWriter?.grouping.keepsTotals = !holdsOnlyNews
    }

    /// An existing source file, and what is done with it.
    struct SourceFile {
        var path: String
        var kind: SourceFiles.Kind
        /// It is as it was when all of it was imported.
        var isUnchanged: Bool
    }

    /// Imports every store and every file of lines among the paths; directories are searched with
    /// all that is below them.
    ///
    /// A store that cannot be imported is skipped, with its reason in the summary. Of a file of lines all good lines
    /// are imported. A file that is as it was when all of it was imported is not opened.
    ///
    /// - Parameters:
    ///   - lines: Opens a file of lines; `-` is standard input. Nil refuses such files.
    ///   - isReports: Whether a file that is not named as lines has reports that `lines` opens.
    ///   - verifies: Compares the reports that each store claims to hold with those that were imported, as is needed
    ///     before it may be deleted.
    ///   - isQuarantined: Files that are not even tried.
    ///   - isCancelled: Polled between transactions and now and then in a long file; all that was imported until then
    ///     is kept.
    /// - Throws: only errors of the central store; the transactions before it are kept.
    package func run(
        _ paths: [String],
        lines: ((_ path: String) throws(StoreError) -> any ReportFeed)? = nil,
        isReports: @escaping (_ path: String) -> Bool = { _ in false },
        verifies: Bool = false,
        isCancelled: @escaping () -> Bool = { false },
        isQuarantined: (_ path: String) -> Bool = { _ in false },
        progress: (IngestProgress) -> Void = { _ in }
    ) throws(StoreError) -> IngestSummary {
        let found = SourceFiles(paths, except: FileFacts(file.path), isReports: isReports)
        var summary = IngestSummary(files: found.skipped.filter { !isQuarantined($0.path) })
        self.verifies = verifies
        self.isCancelled = isCancelled
        defer { self.isCancelled = { false } }
        importedCount = 0
        var rest = try sourceFiles(found.files.filter { !isQuarantined($0.path) })[...]
        summary.quarantinedCount =
            found.files.count + found.skipped.count - rest.count - summary.files.count
        let ahead = SourcePrefetcher(
            rest.filter { $0.kind == .store && !$0.isUnchanged }.map(\.path),
            known: try watermarks(), stop: stop)
        // A store that is to be imported in parts, which no batch has room for.
        var large: SourcePrefetcher.Answer?
        var hasWritten = false
        func report(_ summary: IngestSummary) {
            progress(
                IngestProgress(
                    filesDone: summary.files.count,
                    fileCount: found.files.count + found.skipped.count,
                    reportsImported: importedCount))
        }
        while let next = rest.first {
            if next.isUnchanged {
                rest.removeFirst()
                summary.files.append(.unchanged(next.path))
                continue
            }
            if isCancelled() {
                summary.isCancelled = true
                break
            }
            hasWritten = true
            if next.kind == .lines {
                rest.removeFirst()
                let result = try importLines(next.path, lines, isCancelled)
                summary.isCancelled = result.isCancelled
                summary.files.append(result.file)
                report(summary)
            } else if let store = large {
                large = nil
                if let result = try importParts(of: store, from: ahead, { report(summary) }) {
                    rest.removeFirst()
                    summary.files.append(result)
                }
                report(summary)
                summary.isCancelled = summary.isCancelled || stop.isSet
            } else {
                large = try importBatch(&rest, from: ahead, &summary, report)
                summary.isCancelled = summary.isCancelled || stop.isSet
            }
            if stop.isSet { break }
        }
        if summary.unchangedCount > 0 {
            // The rules may be others than last time, though all files are as they were.
            if !hasWritten { try write { _ in } }
            report(summary)
        }
        return summary
    }

    deinit { try? close() }

    /// From now on, the time to wait for other processes' transactions.
    package func wait(_ time: Duration) { file.connection.wait(time) }

    /// Counts there while statements run.
    package func note(_ progress: StatementProgress) { file.connection.progress = progress }

    /// Checks that commits are found under the central store's path.
    ///
    /// - Throws: `moved` or `damaged` where it would not be.
    package func expectInPlace() throws(StoreError) { try place.expectUnchanged(file) }

    /// Closes the central store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) {
        openWriter = nil
        try file.close()
    }

    func writer() throws(StoreError) -> IngestWriter {
        guard let openWriter else {
            throw .cannotOpen(path: file.path, reason: "already closed")
        }
        return openWriter
    }

    private func watermarks() throws(StoreError) -> [UniqueID: SourceWatermark] {
        let writer = try writer()
        return try StoreError.catching(path: file.path) { try writer.watermarks() }
    }

    /// Looks which files are as they were. One that may be deleted after it is looked at is opened in any case.
    private func sourceFiles(
        _ found: [(path: String, kind: SourceFiles.Kind)]
    ) throws(StoreError) -> [SourceFile] {
        let writer = try writer()
        return try StoreError.catching(path: file.path) {
            try found.map { path, kind in
                var isUnchanged = false
                if path != "-", let state = SourceFileState(path),
                    !verifies || state.hasCompanions
                {
                    isUnchanged = try writer.files.holds(path, state)
                }
                return SourceFile(path: path, kind: kind, isUnchanged: isUnchanged)
            }
        }
    }

    /// Notes the state of a file that was imported, if every later change of it will show.
    func note(_ path: String, _ state: SourceFileState?, _ writer: IngestWriter) throws {
        guard let state, state.isSettled(at: clock()) else { return }
        try writer.files.note(path, state)
    }

    /// Runs `body` in a transaction that ends with the changes it noted.
    func write<Answer>(_ body: (IngestWriter) throws -> Answer) throws(StoreError) -> Answer {
        let writer = try writer()
        do {
            return try file.connection.transaction(.immediate) {
                try writer.notice()
                let answer = try body(writer)
                try writer.flush()
                return answer
            }
        } catch {
            try? writer.forget()
            throw error
        }
    }
}
