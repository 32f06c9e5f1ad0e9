// The newest reports with the group that each belongs to, as data and for people.

internal import StallAnalysis
internal import StallModel
internal import StallStore

struct Listing {
    /// One report and the group it is in.
    struct Entry {
        var report: ReportSummary
        var run: ProcessRun
        var signature: Signature
    }

    /// The newest first.
    var entries: [Entry]
    /// How many reports the filter selects, as far as they were counted.
    var reportCount: Int
    /// There are more than that.
    var isCountCut = false
    /// Of all reports that were counted.
    var shortIDs: ShortIDs

    var rows: [ListingRow] { entries.map(ListingRow.init) }
}

extension Listing {
    /// So many reports beyond those that are shown are counted.
    private static let furtherCount = 1000

    init(
        store: ReportStore, filter: ReportFilter, rules: GroupingRules = .builtIn, limit: Int
    ) throws {
        let counted = limit + Self.furtherCount
        let selection = try store.newest(filter, count: counted)
        let newest = selection.reports.prefix(limit)
        let frames = try store.frames(ofStacks: Set(newest.flatMap { $0.stacks.map(\.stack) }))
        let grouper = DefaultGrouper(rules: rules)
        let entries = newest.map { report in
            let stacks = report.stacks.map { (frames[$0.stack] ?? [], $0.weight) }
            let run = selection.runs[report.run]
            return Entry(
                report: report, run: run,
                signature: grouper.signature(of: stacks, executable: run.buildID))
        }
        self.init(
            entries: entries, reportCount: selection.reports.count,
            isCountCut: selection.reports.count == counted,
            shortIDs: ShortIDs(shown: newest.map(\.id), among: selection.reports.lazy.map(\.id)))
    }
}

/// One report in a list, as data: the shape of `list --json`. Scripts depend on the names.
struct ListingRow: Encodable {
    let schema = "stallctl.listing/1"
    var id: String
    var start: String
    var durationMs: Double
    var state: String
    /// What ended it; null while it lasts, and where nobody knows.
    @Nullable var ending: String?
    var verdict: String
    var app: String
    var version: String
    var host: String
    var pid: Int32
    var loop: String
    var signature: String
    var title: String
    var frames: [String]
    @Nullable var wait: String?
    /// Null where nothing looked for one.
    @Nullable var cause: String?

    init(_ entry: Listing.Entry) {
        id = entry.report.id.description
        start = entry.report.start.rfc3339
        durationMs = entry.report.duration.milliseconds
        state = entry.report.state.word
        ending = entry.report.ending?.word
        verdict = entry.report.verdict.word
        app = entry.run.app
        version = entry.run.version
        host = entry.run.host
        pid = entry.run.pid
        loop = entry.report.loop
        signature = hexadecimal(entry.signature.hash)
        title = entry.signature.title(under: entry.report.cause)
        frames = entry.signature.keyFrames
        wait = entry.signature.wait?.rawValue
        cause = entry.report.cause?.word
    }

    static let csvHeader = [
        "id", "start", "duration_ms", "state", "verdict", "app", "version", "host", "pid", "loop",
        "signature", "title", "wait", "frames", "cause", "ending",
    ]

    var csvFields: [CSVWriter.Field] {
        [
            .plain(id), .plain(start), .plain("\(durationMs)"), .plain(state), .plain(verdict),
            .text(app), .text(version), .text(host), .plain("\(pid)"), .text(loop),
            .plain(signature),
            .text(title), .plain(wait ?? ""), .text(frames.joined(separator: " <- ")),
            .plain(cause ?? ""), .plain(ending ?? ""),
        ]
    }
}

/// `list` for people. A column that says the same in every row is left out.
struct ListView {
    var listing: Listing
    var terminal: Terminal

    var lines: [String] {
        guard !listing.entries.isEmpty else { return ["No reports."] }
        let apps = Set(listing.entries.map { "\($0.run.app) \($0.run.version)" })
        let hosts = Set(listing.entries.map(\.run.host))
        let columns: [(Table.Column, (Listing.Entry) -> Table.Cell)?] = [
            (.init("ID"), { .init(listing.shortIDs[$0.report.id]) }),
            (.init("BEGAN", spare: 1), { .init($0.report.start.exactText(on: terminal)) }),
            (.init("LASTED", .trailing), { .init($0.report.duration.precise, style: .strong) }),
            apps.count > 1
                ? (.init("APP", spare: 2), { .init("\($0.run.app) \($0.run.version)") }) : nil,
            hosts.count > 1 ? (.init("HOST", spare: 4), { .init($0.run.host) }) : nil,
            (.init("LOOP", spare: 6), { .init($0.report.loop) }),
            (.init("STATE", spare: 3), { state(of: $0.report) }),
            (
                .init("CAUSE", spare: 5),
                { .init($0.report.cause?.word ?? $0.signature.wait?.rawValue ?? "") }
            ),
            (.init("WHERE"), { place(of: $0.signature) }),
        ]
        let shown = columns.compactMap(\.self)
        let table = Table(
            columns: shown.map(\.0),
            rows: listing.entries.map { entry in shown.map { $0.1(entry) } })
        var lines = table.lines(for: terminal)
        if listing.reportCount > listing.entries.count {
            let rest = listing.reportCount - listing.entries.count
            let text =
                listing.isCountCut
                ? "More than \(rest - 1) older reports: --limit \(listing.reportCount), or --until"
                : "\(counted(rest, "older report")): --limit \(listing.reportCount)"
            lines.append(terminal.paint(text, .faint))
        }
        return lines
    }

    /// The verdict says more than the state when the delay was not the app's own.
    private func state(of report: ReportSummary) -> Table.Cell {
        guard report.verdict == .stalled else { return .init(report.verdict.word, style: .faint) }
        return .init(report.state.word, style: report.state == .ended ? nil : .alarming)
    }

    private func place(of signature: Signature) -> Table.Cell {
        guard let first = signature.keyFrames.first else { return .init(signature.title) }
        return .init(
            first, additions: signature.keyFrames.dropFirst().prefix(1).map { "  <- " + $0 })
    }
}
