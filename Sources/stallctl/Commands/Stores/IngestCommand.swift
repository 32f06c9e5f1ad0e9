// `ingest`: imports many stores into one, once or continuously. IngestJob does the work; this reports progress
// and failures.

internal import ArgumentParser
internal import StallAnalysis
internal import StallFormats
internal import StallIngest
internal import StallModel
internal import StallQuery

struct IngestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ingest",
        abstract: "Import reports from agent stores and report files into a central store.",
        discussion: """
            A path is a store, a file of reports, a directory (searched recursively), a
            quoted glob such as '/srv/*/stalls.sqlite', or - for reports on standard
            input. Ingest is idempotent: no report is imported twice, also while agents
            write and after the job was killed. A file that cannot be imported is
            reported on stderr and left unchanged; all others are imported and the exit
            code is 1.

            Files of reports are JSONL files written by export, and other programs'
            reports, which are recognized by content, plain or in gzip:
            \(ReportFormat.allCases.map(\.rawValue).joined(separator: ", ")).
            Samples of profilers are imported with the verdict sampled and are not
            ranked; crash reports without signs of a hang are rejected. --as stall
            takes both as stalls.

            EXAMPLES
              stallctl ingest --store central.sqlite /var/lib/photos/stalls.sqlite
              stallctl ingest --store central.sqlite --archive /srv/done /srv/collected
              stallctl ingest --store central.sqlite --keep 90d '/srv/*/stalls.sqlite'
              stallctl export --format jsonl | ssh hub stallctl ingest -
              stallctl ingest --store central.sqlite --app photos hangs/*.crash
              stallctl ingest --store 'clickhouse://stall@hub:8123/stalls?cluster=stalls' /srv
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var grouping: GroupingOptions
    @OptionGroup(title: "Reports of other programs") var foreign: ForeignOptions

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

    @Option(
        help: ArgumentHelp(
            "After import, delete reports of days before this time, as prune does: 90d, 4w.",
            valueName: "time"))
    var keep: String?

    @Flag(help: "Show what each file is read as, and import nothing.")
    var dryRun = false

    @Flag(help: "Accept patterns that match no file.")
    var allowUnmatched = false

    @Flag(help: "Retry quarantined files even if they have not changed.")
    var retry = false

    @Flag(help: "Write the summary as JSON.")
    var json = false

    @Argument(
        help: ArgumentHelp("Stores, files of reports, directories, or -.", valueName: "path"),
        completion: .file())
    var paths: [String]

    func validate() throws {
        if delete, archive != nil {
            throw ValidationError("--delete and --archive cannot be used together.")
        }
        if dryRun, watch || delete || archive != nil {
            throw ValidationError("--dry-run cannot be used with --watch, --delete or --archive.")
        }
        if watch, paths.contains("-") {
            throw ValidationError("--watch cannot be used with standard input.")
        }
        try expectOneOrMore(every, "--every")
        guard wait >= 0 else { throw ValidationError("--wait must be 0 or more; it was \(wait).") }
        do { _ = try keep.map(readTime) } catch { throw ValidationError("--keep: \(error)") }
    }

    func run() throws {
        if dryRun { return try showReadings() }
        let (stop, recognized) = (StopSignal(), RecognizedFiles())
        let path = target.pathToCreate()
        let remote = try StoreOpener.remote(path)
        if remote != nil { try expectRemoteOptions() }
        var hasFailed = false
        var hasRun = false
        var lastError = ""
        repeat {
            do {
                hasFailed =
                    try remote.map { try runOnce($0, recognized, stop) }
                    ?? runOnce(path, recognized, stop)
                (hasRun, lastError) = (true, "")
            } catch  where watch && hasRun && !(error is OutputError) {
                // In --watch mode, a full disk or a long job of another process is not fatal.
                if lastError != "\(error)" { say("stallctl: \(error)".printable) }
                lastError = "\(error)"
            }
            if watch { stop.sleep(seconds: every) }
        } while watch && !stop.isRequested
        // In --watch mode each failure was reported when it happened.
        if hasFailed && !watch { throw ExitCode.failure }
    }

    /// Imports what is there now.
    ///
    /// - Returns: Whether anything could not be imported.
    private func runOnce(
        _ path: String, _ recognized: RecognizedFiles, _ stop: StopSignal
    ) throws -> Bool {
        let lock = try JobLock(store: path, waitSeconds: wait) { stop.isRequested }
        defer { withExtendedLifetime(lock) {} }
        var job = IngestJob(store: path, paths: paths)
        job.allowsUnmatched = allowUnmatched
        job.retriesQuarantined = retry
        job.cleanup = delete ? .delete : archive.map { .archive(directory: $0) } ?? .keep
        job.keepsSince = try keep.map(readTime)
        var quarantine = Quarantine(store: path)
        let progress = ProgressLine()
        let grouper = DefaultGrouper(rules: try grouping.rulesInForce(ofFile: path))
        let files = ReportFiles(options: try foreign.options())
        let result = try job.run(
            grouper: grouper, quarantine: quarantine,
            lines: { descriptor, closesIt in
                files.feed(descriptor: descriptor, closesIt: closesIt) {
                    stop.waits(forInput: descriptor)
                }
            },
            isReports: { recognized.hasReports($0) },
            isCancelled: { stop.isRequested }
        ) { progress.show($0) }
        progress.clear()
        try quarantine.update(result.summary.files)
        if result.hasChanges { try UnfinishedNames.complete(path: path, grouper: grouper) }
        return try tell(result, of: path)
    }

    /// Reports the result of a job.
    ///
    /// - Returns: Whether anything could not be imported.
    func tell(_ result: IngestJobResult, of path: String) throws -> Bool {
        for line in IngestView.errorLines(of: result.summary) { say("stallctl: " + line) }
        for error in result.cleanupErrors { say("stallctl: \(error)".printable) }
        // The import is done, whatever failed behind it.
        if !watch || result.hasChanges { try tell(result.summary, prunedCount: result.prunedCount) }
        if let error = result.pruneError { throw error }
        if let metrics { try writeMetrics(result.summary, of: path, to: metrics) }
        return result.hasFailures
    }

    private func tell(_ summary: IngestSummary, prunedCount: Int) throws {
        if json {
            try Output.write(json: [
                IngestView.Row(summary, store: target.path, prunedCount: prunedCount)
            ])
        } else {
            let sentence = IngestView.sentence(
                for: summary, store: target.path, prunedCount: prunedCount)
            try Output.write(sentences: IngestView.formatLines(of: summary) + [sentence])
        }
    }

    private func writeMetrics(
        _ summary: IngestSummary, of store: String, to path: String
    ) throws {
        var metrics = Metrics(path: path)
        metrics.add(summary, at: .now)
        let store = try StoreOptions.open(path: store)
        let grouper = DefaultGrouper(rules: try grouping.rulesInForce(ofRead: store))
        let stalls = try store.aggregates(
            AggregateQuestion(withExamples: false), grouper: grouper)
        let builds = try store.aggregates(
            AggregateQuestion(by: .version, withExamples: false), grouper: grouper)
        try metrics.write(to: path, stalls, builds: builds, at: .now)
    }
}
