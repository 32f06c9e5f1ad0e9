// `ingest`: many stores into one. StallStore does it; here it is told, and failures are named.

internal import ArgumentParser
internal import Glibc
internal import StallStore

struct IngestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ingest",
        abstract: "Take the reports of other stores over into one central store.",
        discussion: """
            Directories are searched with all that is below them. Run it as often as
            you like, also while agents write and after it was killed: no report is
            taken twice. A file that cannot be taken is named on stderr and left
            alone; the exit code is then 1, and all others have been taken.

            EXAMPLES
              stallctl ingest --store central.sqlite /var/lib/photos/stalls.sqlite
              stallctl ingest --store central.sqlite /srv/collected
            """)

    @OptionGroup var target: StoreOptions

    @Flag(help: "Write the summary as JSON.")
    var json = false

    @Argument(
        help: ArgumentHelp("The stores, or directories that hold some.", valueName: "path"),
        completion: .file())
    var paths: [String]

    func run() throws {
        let showsProgress = isatty(STDERR_FILENO) == 1
        let ingest = try Ingest(into: target.pathToCreate(), grouper: StoredGrouper())
        let summary = try ingest.run(paths) { progress in
            guard showsProgress else { return }
            report(
                "\(progress.filesDone) of \(progress.fileCount) files, \(progress.reportsTaken) reports"
            )
        }
        if showsProgress { report("") }
        for line in IngestView.errorLines(of: summary) { say("stallctl: " + line) }
        if json {
            try Output.write(json: [IngestView.Row(summary, store: target.path)])
        } else {
            try Output.write(lines: [IngestView.sentence(for: summary, store: target.path)])
        }
        if summary.skippedCount > 0 { throw ExitCode.failure }
    }

    /// Replaces the line that the terminal's cursor is on.
    private func report(_ progress: String) {
        let line = Array("\r\u{1b}[K\(progress)".utf8)
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
