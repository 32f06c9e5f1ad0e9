internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallStore

struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write reports for other programs.",
        discussion: """
            csv has one row a report, a row a group with --rows groups, or a row a
            function on a stack with --rows frames. json is one array of reports with
            all their samples. CSV cells that a spreadsheet would run as a formula
            get a ' in front; --csv-raw leaves it out.

            EXAMPLES
              stallctl export --format csv > reports.csv
              stallctl export --format csv --rows groups --since 7d > groups.csv
              stallctl export --format json | jq '.[].samples | length'
            """)

    /// What to write.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case csv, json
    }

    /// What a row of CSV is.
    enum Rows: String, CaseIterable, ExpressibleByArgument {
        case reports, groups, frames
    }

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Option(help: ArgumentHelp("What to write.", valueName: "format"))
    var format: Format

    @Option(help: ArgumentHelp("What a row of CSV is.", valueName: "kind"))
    var rows = Rows.reports

    @Option(help: ArgumentHelp("Write at most this many reports, the newest.", valueName: "count"))
    var limit: Int?

    @Flag(
        help: "Write names into CSV as they are, without protection against spreadsheet formulas.")
    var csvRaw = false

    func validate() throws {
        if let limit, limit <= 0 {
            throw ValidationError("--limit must be 1 or more; it was \(limit).")
        }
        if rows == .groups, limit != nil {
            throw ValidationError("--limit counts reports; it does not go with --rows groups.")
        }
        if format != .csv, rows != .reports || csvRaw {
            throw ValidationError("--rows and --csv-raw go with --format csv.")
        }
    }

    func run() throws {
        let store = try source.open()
        switch (format, rows) {
        case (.csv, .groups):
            let ranking = try Ranking(
                store: store, filter: filters.filter, by: .total, group: .signature)
            try StandardOutput.write(
                csv: HotspotCSV.header, ranking.rows.map(HotspotCSV.fields), isRaw: csvRaw)
        case (.csv, .reports):
            let rows = try reports(from: store).map(ReportCSV.fields)
            try StandardOutput.write(csv: ReportCSV.header, rows, isRaw: csvRaw)
        case (.csv, .frames):
            let rows = try reports(from: store).flatMap(FrameCSV.rows)
            try StandardOutput.write(csv: FrameCSV.header, rows, isRaw: csvRaw)
        case (.json, _):
            try writeArray(try reports(from: store))
        }
    }

    private func reports(from store: ReportStore) throws -> [ReportRow] {
        var images: [UniqueID: [Image]] = [:]
        return try store.reports(filters.filter, limit: limit).map { report in
            let run = report.run.id
            if images[run] == nil { images[run] = try store.images(ofRun: run) }
            return ReportRow(report, images: images[run] ?? [])
        }
    }

    /// One array, a report a line.
    private func writeArray(_ reports: [ReportRow]) throws {
        var output = StandardOutput()
        try output.write("[")
        for (index, report) in reports.enumerated() {
            try output.write(
                (index == 0 ? "\n" : ",\n") + String(JSONLines.line(report).dropLast()))
        }
        try output.write("\n]\n")
        try output.flush()
    }
}
