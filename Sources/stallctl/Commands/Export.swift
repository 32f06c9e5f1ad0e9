// `export`: reports for other programs, in their formats; to a file all or nothing.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel

struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write reports for other programs.",
        discussion: """
            csv     one row a report; --rows groups: a row a group as top ranks them;
                    --rows frames: a row a function on a stack. Cells that a
                    spreadsheet would run get a ' in front; --csv-raw leaves it out.
            json    one array of reports, with all their samples.
            jsonl   the same reports, one a line.
            folded  app;loop;root;...;leaf and a weight, for flame graph tools.

            EXAMPLES
              stallctl export --format csv > reports.csv
              stallctl export --format csv --rows groups --since 7d -o groups.csv
              stallctl export --format jsonl | jq -r 'select(.state == "hang") | .id'
              stallctl export --format folded | flamegraph.pl > stalls.svg
            """)

    /// What to write.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case csv, json, jsonl, folded
    }

    /// What a row of CSV is.
    enum Rows: String, CaseIterable, ExpressibleByArgument {
        case reports, groups, frames
    }

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions
    @OptionGroup var grouping: GroupingOptions

    @Option(help: ArgumentHelp("What to write.", valueName: "format"))
    var format: Format

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write to this file, which is replaced when all is written.",
            valueName: "path"),
        completion: .file())
    var output: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Write at most this many reports, the newest.", valueName: "count"))
    var limit: Int?

    @Option(help: ArgumentHelp("What a row of CSV is.", valueName: "kind"))
    var rows = Rows.reports

    @Flag(help: "Write names into CSV as they are, without protection against formulas.")
    var csvRaw = false

    @Option(help: ArgumentHelp("What the numbers of folded stacks count.", valueName: "unit"))
    var weight = FoldedStacks.Weight.ms

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        if rows == .groups, limit != nil {
            throw ValidationError("--limit counts reports; it does not go with --rows groups.")
        }
        if format != .csv, rows != .reports || csvRaw {
            throw ValidationError("--rows and --csv-raw go with --format csv.")
        }
        if format != .folded, weight != .ms {
            throw ValidationError("--weight goes with --format folded.")
        }
    }

    func run() throws {
        let store = try source.open()
        switch format {
        case .csv: try writeCSV(from: store)
        case .json: try Output.write(array: reportRows(from: store), to: output)
        case .jsonl: try Output.write(json: reportRows(from: store), to: output)
        case .folded:
            var stacks = FoldedStacks()
            for report in try store.reports(filters.filter, limit: limit) { stacks.add(report) }
            try Output.write(lines: stacks.lines(weight: weight), to: output)
        }
    }

    private func writeCSV(from store: any QueryableStore) throws {
        switch rows {
        case .reports:
            let rows = try reportRows(from: store).lazy.map(ReportCSV.fields)
            try Output.write(csv: ReportCSV.header, rows, isRaw: csvRaw, to: output)
        case .groups:
            let ranking = try grouping.question(to: store, filters.filter)
                .exactRanking(by: .total)
            let rows = ranking.rows.lazy.map(HotspotCSV.fields)
            try Output.write(csv: HotspotCSV.header, rows, isRaw: csvRaw, to: output)
        case .frames:
            let rows = try reportRows(from: store).lazy.flatMap(FrameCSV.rows)
            try Output.write(csv: FrameCSV.header, rows, isRaw: csvRaw, to: output)
        }
    }

    /// The reports, newest first, each with the addresses that its own process had.
    private func reportRows(from store: any QueryableStore) throws -> some Collection<ReportRow> {
        let reports = try store.reports(filters.filter, limit: limit)
        var images: [UniqueID: [Image]] = [:]
        for run in Set(reports.map(\.run.id)) { images[run] = try store.images(ofRun: run) }
        let grouper = DefaultGrouper(rules: try grouping.rules(forStore: store.path))
        let origins = try store.origins(filters.filter)
        return reports.lazy.map { [images] report in
            ReportRow(
                report, images: images[report.run.id] ?? [], origin: origins[report.id],
                grouper: grouper)
        }
    }
}

extension FoldedStacks.Weight: ExpressibleByArgument {}
