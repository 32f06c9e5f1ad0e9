// `list` as text.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// `list` as text. A column with the same value in every row is omitted.
struct ListView {
    var listing: Listing
    var terminal: Terminal

    var lines: [String] {
        guard !listing.entries.isEmpty else { return ["No reports."] }
        let apps = Set(listing.entries.map { "\($0.run.app) \($0.run.version)" })
        let hosts = Set(listing.entries.map(\.run.host))
        let systems = Set(listing.entries.map(\.run.os))
        let devices = Set(listing.entries.map(\.run.device))
        let columns: [(Table.Column, (Listing.Entry) -> Table.Cell)?] = [
            (.init("ID"), { .init(listing.shortIDs[$0.report.id]) }),
            (.init("BEGAN", spare: 1), { .init($0.report.start.exactText(on: terminal)) }),
            (
                .init("LASTED", .trailing),
                { .init($0.report.verdict.length($0.report.duration), style: .strong) }
            ),
            apps.count > 1
                ? (.init("APP", spare: 2), { .init("\($0.run.app) \($0.run.version)") }) : nil,
            hosts.count > 1 ? (.init("HOST", spare: 4), { .init($0.run.host) }) : nil,
            systems.count > 1 ? (.init("OS", spare: 4), { .init($0.run.os ?? "") }) : nil,
            devices.count > 1 ? (.init("DEVICE", spare: 4), { .init($0.run.device ?? "") }) : nil,
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
                : "\(counted(rest, listing.order == .began ? "older report" : "more report")): --limit \(listing.reportCount)"
            lines += terminal.paint(text, .faint).wrapped(to: terminal.columns)
        }
        return lines
    }

    /// The verdict is more informative than the state if the delay was not the app's own.
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
