// `ingest`: imports many stores into one, once or continuously. StallStore does the work; this reports progress and
// failures.

internal import ArgumentParser
internal import Glibc
internal import StallAnalysis
internal import StallFormats
internal import StallModel
internal import StallArchive
internal import StallStore

struct IngestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ingest",
        abstract: "Import reports from agent stores or JSONL files into a central store.",
        discussion: """
            A path is a store, a JSONL file written by export, a directory (searched
            recursively), a quoted glob such as '/srv/*/stalls.sqlite', or - for JSONL
            on standard input. Ingest is idempotent: no report is imported twice, also
            while agents write and after the job was killed. A file that cannot be
            imported is reported on stderr and left unchanged; all others are imported
            and the exit code is 1.

            EXAMPLES
              stallctl ingest --store central.sqlite /var/lib/photos/stalls.sqlite
              stallctl ingest --store central.sqlite --archive /srv/done /srv/collected
              stallctl export --format jsonl | ssh hub stallctl ingest -
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var grouping: GroupingOptions

    @Flag(help: "Run continuously, rescanning every --every seconds, until SIGINT or SIGTERM.")
    var watch = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Rescan interval for --watch, in seconds.", valueName: "seconds"))
    var every = 10

    @Flag(help: "Delete source files after import, unless a process has them open.")
    var delete = false

    @Option(
        help: ArgumentHelp(
            "Move source files to this directory after import, unless a process has them open.",
            valueName: "directory"),
        completion: .directory)
    var archive: String?

    @Option(
        help: ArgumentHelp(
            "Write Prometheus metrics to this file, for node_exporter's textfile collector.",
            valueName: "path"),
        completion: .file(extensions: ["prom"]))
    var metrics: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Maximum time to wait for another job on the same store, in seconds.",
            valueName: "seconds"))
    var wait = 60

    @Flag(help: "Accept patterns that match no file.")
    var allowUnmatched = false

    @Flag(help: "Retry quarantined files even if they have not changed.")
    var retry = false

    @Flag(help: "Write the summary as JSON.")
    var json = false

    @Argument(
        help: ArgumentHelp("Stores, JSONL files, directories, or -.", valueName: "path"),
        completion: .file())
    var paths: [String]

    func validate() throws {
        if delete, archive != nil {
            throw ValidationError("--delete and --archive cannot be used together.")
        }
        if watch, paths.contains("-") {
            throw ValidationError("--watch cannot be used with standard input.")
        }
        try expectOneOrMore(every, "--every")
        guard wait >= 0 else { throw ValidationError("--wait must be 0 or more; it was \(wait).") }
    }

    func run() throws {
        let stop = StopSignal()
        let path = target.pathToCreate()
        var hasFailed = false
        var hasLooked = false
        var complaint = ""
        repeat {
            do {
                let lock = try JobLock(store: path, waitSeconds: wait) { stop.hasCome }
                hasFailed = try look(path, stop)
                _ = consume lock
                (hasLooked, complaint) = (true, "")
            } catch  where watch && hasLooked && !(error is OutputError) {
                // In --watch mode, a full disk or a long job of another process is not fatal.
                if complaint != "\(error)" { say("stallctl: \(error)".printable) }
                complaint = "\(error)"
            }
            if watch { stop.sleep(seconds: every) }
        } while watch && !stop.hasCome
        // In --watch mode each failure was reported when it happened.
        if hasFailed && !watch { throw ExitCode.failure }
    }

    /// Imports what is there now.
    ///
    /// - Returns: Whether anything could not be imported.
    private func look(_ path: String, _ stop: StopSignal) throws -> Bool {
        var quarantine = Quarantine(store: path)
        let ingest = try Ingest(
            into: path, grouper: DefaultGrouper(rules: grouping.rules(forStore: path)))
        let progress = ProgressLine()
        let summary = try ingest.run(
            SourcePaths.expanding(paths, allowsUnmatched: allowUnmatched),
            lines: { path throws(StoreError) in try openLines(path, stop) },
            verifies: delete || archive != nil,
            isCancelled: { stop.hasCome },
            isQuarantined: { !retry && quarantine.holds($0) }
        ) { progress.show($0) }
        try ingest.close()
        progress.clear()
        for line in IngestView.errorLines(of: summary) { say("stallctl: " + line) }
        try quarantine.update(summary.files)
        let isDisposed = dispose(of: summary)
        // Count first: the import is done, whatever fails below.
        if !watch || summary.addedCount + summary.changedCount > 0 { try tell(summary) }
        if let metrics { try writeMetrics(summary, of: path, to: metrics) }
        let missing = summary.files.contains { $0.missingCount > 0 }
        return summary.skippedCount + summary.lineFaultCount > 0 || missing || !isDisposed
    }

    private func tell(_ summary: IngestSummary) throws {
        if json {
            try Output.write(json: [IngestView.Row(summary, store: target.path)])
        } else {
            try Output.write(
                sentences: [IngestView.sentence(for: summary, store: target.path)])
        }
    }

    private func openLines(
        _ path: String, _ stop: StopSignal
    ) throws(StoreError) -> any ReportFeed {
        if path == "-" {
            return ReportLines(descriptor: STDIN_FILENO) { stop.waits(forInput: STDIN_FILENO) }
        }
        // Without O_NONBLOCK, opening a pipe without a writer would block here, with signals blocked.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .cannotOpen(path: path, reason: String(cString: strerror(errno)))
        }
        return ReportLines(descriptor: descriptor, closesIt: true) {
            stop.waits(forInput: descriptor)
        }
    }

    /// Deletes or archives the files that were imported, as requested.
    ///
    /// - Returns: Whether every file was disposed of.
    private func dispose(of summary: IngestSummary) -> Bool {
        let cleanup: SourceCleanup =
            delete ? .delete : archive.map { .archive(directory: $0) } ?? .keep
        var isDone = true
        for file in summary.files where file.isFinished {
            do throws(JobError) { try cleanup.dispose(of: file.path) } catch {
                say("stallctl: \(error)".printable)
                isDone = false
            }
        }
        return isDone
    }

    private func writeMetrics(
        _ summary: IngestSummary, of store: String, to path: String
    ) throws {
        var metrics = Metrics(path: path)
        metrics.add(summary, at: .now)
        let store = try ReportStore.open(path: store)
        let grouper = DefaultGrouper(rules: try grouping.rules(forStore: store.path))
        let stalls = try store.aggregates(
            AggregateQuestion(withExamples: false), grouper: grouper)
        let builds = try store.aggregates(
            AggregateQuestion(by: .version, withExamples: false), grouper: grouper)
        try metrics.write(to: path, stalls, builds: builds, at: .now)
    }
}
