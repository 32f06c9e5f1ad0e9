// `export`: writes reports in the formats of other programs. An output file appears complete or not at all.

internal import ArgumentParser
internal import Glibc
internal import StallAnalysis
internal import StallArchive
internal import StallFormats
internal import StallModel
internal import StallQuery

struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write reports for other programs.",
        discussion: """
            csv     one row per report; with --rows groups, per group of top; with
                    --rows frames, per function on a stack. Cells that a spreadsheet
                    would run as formulas are prefixed with '; --csv-raw disables this.
            json    one array of reports, with all their samples.
            jsonl   the same reports, one per line; with --rows all, also watched time,
                    losses, suppressed stalls, process runs and names, one per line, so
                    that ingest of the lines equals ingest of the store.
            folded  app;loop;root;...;leaf and a weight, for flame graph tools.

            For viewers, stalls only, unless --verdict or --state names others; the
            times add up to the total of top:
            pprof         go tool pprof, Pyroscope, Parca, Grafana; always gzip
            chrome-trace  ui.perfetto.dev, chrome://tracing: one track per loop, one
                          slice per stall with its functions, arrows to lock holders
            speedscope    speedscope.app
            perf-script   the output of perf script, which many viewers read
            firefox       profiler.firefox.com

            EXAMPLES
              stallctl export --format csv > reports.csv
              stallctl export --format csv --rows groups --since 7d -o groups.csv
              stallctl export --format jsonl --rows all -o all.jsonl
              stallctl export --format jsonl | jq -r 'select(.state == "hang") | .id'
              stallctl export --format folded | flamegraph.pl > stalls.svg
              stallctl export --format pprof -o stalls.pb.gz && go tool pprof -http : stalls.pb.gz
              stallctl export --format chrome-trace --limit 1000 -o trace.json.gz
            """)

    /// Output format.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case csv, json, jsonl, folded
        case pprof, speedscope, firefox
        case chromeTrace = "chrome-trace"
        case perfScript = "perf-script"

        static let allCases: [Format] = [
            .csv, .json, .jsonl, .folded, .pprof, .chromeTrace, .speedscope, .perfScript, .firefox,
        ]
    }

    /// The unit of a CSV row, or of a line of JSONL.
    enum Rows: String, CaseIterable, ExpressibleByArgument {
        case reports, groups, frames, all
    }

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions
    @OptionGroup var verdicts: VerdictOptions
    @OptionGroup var grouping: GroupingOptions

    @Option(help: ArgumentHelp("Output format.", valueName: "format"))
    var format: Format

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Output file, replaced once all is written. Default: standard output.",
            valueName: "path"),
        completion: .file())
    var output: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of reports to write, newest first.", valueName: "count"))
    var limit: Int?

    @Option(
        help: ArgumentHelp(
            "What a CSV row represents; all: every row of the store, with --format jsonl.",
            valueName: "kind"))
    var rows = Rows.reports

    @Flag(help: "Write names to CSV unmodified, without protection against spreadsheet formulas.")
    var csvRaw = false

    @Option(
        help: ArgumentHelp("Weight of folded stacks: milliseconds or samples.", valueName: "unit"))
    var weight = FoldedStacks.Weight.ms

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        if rows == .groups, limit != nil {
            throw ValidationError("--limit counts reports; it cannot be used with --rows groups.")
        }
        if rows == .all {
            guard format == .jsonl, !csvRaw else {
                throw ValidationError("--rows all requires --format jsonl.")
            }
            guard filters.isEmpty, verdicts.isEmpty, limit == nil else {
                throw ValidationError(
                    "--rows all writes the whole store; it cannot be used with --limit or with filters, the settings file's included."
                )
            }
        } else if format != .csv, rows != .reports || csvRaw {
            throw ValidationError("--rows and --csv-raw require --format csv.")
        }
        if format != .folded, weight != .ms {
            throw ValidationError("--weight requires --format folded.")
        }
    }

    private var filter: ReportFilter { verdicts.narrowing(filters.filter) }

    func run() throws {
        if rows == .all { try source.expectFile(for: "export --rows all") }
        let store = try source.open()
        try store.consistently { try export(store) }
    }

    private func export(_ store: any QueryableStore) throws {
        switch format {
        case .csv: try writeCSV(from: store)
        case .json:
            let json = try JSONArray(Output.open(output))
            try forEachLine(of: store, json.write)
            try json.finish()
        case .jsonl:
            let bytes = try OutputBytes(output)
            if rows == .all {
                let grouper = DefaultGrouper()
                var lines = StoreLines { $0.signature(by: grouper).group }
                // Only a file gets here.
                try (store as? ReportStore)?.forEachOtherRow { try bytes.write(lines.line($0)) }
            }
            if try hasGroups(store) {
                var lines = OutlineLines()
                try store.forEachOutline(filter, limit: limit, withThreads: true) {
                    outline, lookup in try bytes.write(lines.line(outline, lookup))
                }
            } else {
                try forEachLine(of: store, bytes.write)
            }
            try bytes.finish()
        case .folded where limit == nil:
            try writeFolded(from: store)
        case .folded:
            var stacks = FoldedStacks(verdicts: filter.rankedVerdicts)
            try store.forEachReport(filter, in: .newestFirst, limit: limit) {
                report, _, _ in stacks.add(report)
            }
            try Output.write(lines: stacks.lines(weight: weight), to: output)
        case .pprof where output == nil && isatty(STDOUT_FILENO) == 1:
            throw ValidationError(
                "--format pprof is binary and standard output is a terminal; name a file with --output."
            )
        case .pprof, .chromeTrace, .speedscope, .perfScript, .firefox:
            let export = ViewerExport(
                store: store, filter: filter, limit: limit,
                rules: try grouping.rules(toRead: store))
            try export.write(format, to: output)
        }
    }

    private func writeCSV(from store: any QueryableStore) throws {
        switch rows {
        case .reports:
            let csv = try CSVRows(ReportCSV.header, isRaw: csvRaw, to: output)
            if try hasGroups(store) {
                var rows = OutlineCSV()
                try store.forEachOutline(filter, limit: limit, withThreads: false) {
                    outline, lookup in
                    try csv.write { writer, row in
                        try rows.append(outline, lookup, by: writer, to: &row)
                    }
                }
            } else {
                let grouper = DefaultGrouper(rules: try grouping.rules(toRead: store))
                try store.forEachReport(filter, in: .newestFirst, limit: limit) {
                    report, _, _ in
                    try csv.write(
                        ReportCSV.fields(report, report.signature(by: grouper).group))
                }
            }
            try csv.finish()
        case .all: break
        case .groups:
            let ranking = try grouping.question(to: store, filter)
                .exactRanking(by: .total)
            let rows = ranking.rows.lazy.map(HotspotCSV.fields)
            try Output.write(csv: HotspotCSV.header, rows, isRaw: csvRaw, to: output)
        case .frames:
            let csv = try CSVRows(FrameCSV.header, isRaw: csvRaw, to: output)
            try store.forEachReport(filter, in: .newestFirst, limit: limit) {
                report, _, _ in try FrameCSV.rows(report).forEach(csv.write)
            }
            try csv.finish()
        }
    }

    private func writeFolded(from store: any QueryableStore) throws {
        let times = try store.stackTimes(filter)
        var numbers = KeyNumbers(times.lazy.map(\.stack))
        var titles = FoldedTitles()
        let functions = try store.functions(ofStacks: numbers.keys) { titles.add($0.title) }
        var stacks = FoldedTable(titles)
        for time in times { stacks.add(time, functions[numbers.add(time.stack)]) }
        let bytes = try OutputBytes(output)
        try stacks.forEachLine(weight: weight) { try bytes.write(Array($0.utf8)) }
        try bytes.finish()
    }

    /// Whether the store has the groups that these rules give its reports: then stacks are read as numbers.
    private func hasGroups(_ store: any QueryableStore) throws -> Bool {
        try store.rulesHash() == grouping.rules(toRead: store).hash
    }

    /// Streams the reports' lines, newest first, each with the image addresses of its own process.
    private func forEachLine(
        of store: any QueryableStore, _ body: ([UInt8]) throws -> Void
    ) throws {
        let grouper = DefaultGrouper(rules: try grouping.rules(toRead: store))
        try store.forEachReport(filter, in: .newestFirst, limit: limit) {
            report, origin, lookup in
            let group = report.signature(by: grouper).group
            try body(
                ReportText(report, group: group, origin: origin)
                    .line(images: lookup.images(ofRun: report.run.id)))
        }
    }
}

extension FoldedStacks.Weight: ExpressibleByArgument {}
