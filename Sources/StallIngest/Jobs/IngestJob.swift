// One run of a periodic import: new reports in, broken files set aside, imported files deleted or archived, old reports
// deleted. The command that runs it shows the result.

internal import Glibc
package import StallModel
package import StallQuery
package import StallStore

/// The settings of a job.
package struct IngestJob {
    /// The central store.
    package var store: String
    /// Stores, files of lines, directories, globs, or `-`.
    package var paths: [String]
    /// A glob may match no file.
    package var allowsUnmatched = false
    /// Files in quarantine are tried even if they have not changed.
    package var retriesQuarantined = false
    /// The store begins with the positions of sources whose reports are elsewhere.
    package var holdsOnlyNews = false
    /// The cleanup of files that were imported.
    package var cleanup = SourceCleanup.keep
    /// Reports of days before it are deleted after the import.
    package var keepsSince: UnixTime?

    package init(store: String, paths: [String]) {
        self.store = store
        self.paths = paths
    }

    /// Imports the existing files. The caller holds the ``JobLock``.
    ///
    /// - Parameters:
    ///   - lines: Reads reports from a descriptor; the last argument says whether it closes it.
    ///   - isReports: Whether a file that is not named as lines has reports that `lines` reads.
    ///   - isCancelled: Polled between transactions and while waiting for input.
    /// - Throws: The error of the central store that ended the import. Later failures are in the result.
    package func run(
        grouper: any ReportGrouper, quarantine: Quarantine,
        lines: @escaping (_ descriptor: CInt, _ closesIt: Bool) -> any ReportFeed,
        isReports: @escaping (_ path: String) -> Bool = { _ in false },
        isCancelled: @escaping () -> Bool = { false },
        progress: (IngestProgress) -> Void = { _ in }
    ) throws(StoreError) -> IngestJobResult {
        let ingest = try Ingest(into: store, grouper: grouper, holdsOnlyNews: holdsOnlyNews)
        var result = IngestJobResult(
            summary: try ingest.run(
                SourcePaths.expanding(paths, allowsUnmatched: allowsUnmatched),
                lines: { path throws(StoreError) in try open(path, lines) },
                isReports: isReports,
                verifies: cleanup != .keep, isCancelled: isCancelled,
                isQuarantined: { !retriesQuarantined && quarantine.holds($0) },
                progress: progress))
        let retention = try outdated(in: ingest)
        try ingest.close()
        for file in result.summary.files where file.isFinished {
            do throws(JobError) { try cleanup.dispose(of: file.path) } catch {
                result.cleanupErrors.append(error)
            }
        }
        if let retention {
            do throws(StoreError) {
                result.prunedCount = try pruneStore(
                    path: store, keeping: retention, grouper: grouper
                ).deletedCount
            } catch {
                result.pruneError = error
            }
        }
        return result
    }

    private func open(
        _ path: String, _ lines: (CInt, Bool) -> any ReportFeed
    ) throws(StoreError) -> any ReportFeed {
        if path == "-" { return lines(STDIN_FILENO, false) }
        // Without O_NONBLOCK, opening a pipe without a writer would block here, deaf to cancellation.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .cannotOpen(path: path, reason: String(cString: strerror(errno)))
        }
        return lines(descriptor, true)
    }

    /// The retention to apply; nil if there is nothing to delete. Whole days: then most runs delete nothing, and a
    /// day's reports cost one pass over the store.
    private func outdated(in ingest: Ingest) throws(StoreError) -> Retention? {
        guard let keepsSince else { return nil }
        let retention = Retention(daysSince: keepsSince)
        return try ingest.hasReports(before: retention.reportsSince) ? retention : nil
    }
}

/// The result of a job.
package struct IngestJobResult {
    package var summary: IngestSummary
    /// Files that were imported, and could not be deleted or archived.
    package var cleanupErrors: [JobError] = []
    /// Reports that were deleted because of their age.
    package var prunedCount = 0
    /// Why old reports could not be deleted.
    package var pruneError: StoreError?

    init(summary: IngestSummary) { self.summary = summary }

    /// Whether the store is another one now.
    package var hasChanges: Bool { summary.addedCount + summary.changedCount + prunedCount > 0 }

    /// Whether anything could not be imported, or is still there although it was to go.
    package var hasFailures: Bool {
        summary.skippedCount + summary.lineFaultCount > 0 || !cleanupErrors.isEmpty
            || summary.files.contains { $0.missingCount > 0 }
    }
}
