// Which reports a command speaks of; the same for every command that reads reports.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel

struct FilterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only reports of this app; repeat it for several. So too the next three.",
            valueName: "name"))
    var app: [String] = []

    @Option(help: ArgumentHelp("Only reports of this version of the app.", valueName: "version"))
    var version: [String] = []

    @Option(help: ArgumentHelp("Only reports from this host.", valueName: "name"))
    var host: [String] = []

    @Option(
        help: ArgumentHelp("Only reports of the loop watched under this name.", valueName: "name"))
    var loop: [String] = []

    @Option(
        help: ArgumentHelp(
            "Only reports of this cause: lock, disk, cpu, ...; repeat it for several.",
            valueName: "cause"),
        completion: .list(CauseClass.allCases.map(\.word)), transform: readCause)
    var cause: [CauseClass] = []

    @Option(
        help: ArgumentHelp(
            "Only stalls that began then or later: 2h, 7d, today, 2026-11-21, 2026-11-21T09:30:00Z.",
            valueName: "time"),
        transform: readTime)
    var since: UnixTime?

    @Option(
        help: ArgumentHelp("Only stalls that began before then.", valueName: "time"),
        transform: readTime)
    var until: UnixTime?

    func validate() throws {
        if let since, let until, since >= until {
            throw ValidationError(
                "--since \(since.rfc3339) is not before --until \(until.rfc3339); no report can match both."
            )
        }
    }

    var filter: ReportFilter {
        var filter = ReportFilter()
        filter.apps = app
        filter.versions = version
        filter.hosts = host
        filter.loops = loop
        filter.causes = cause.isEmpty ? nil : Set(cause)
        filter.since = since
        filter.until = until
        return filter
    }

    var isEmpty: Bool { filter == ReportFilter() }
}

private func readCause(_ text: String) throws -> CauseClass {
    if let cause = CauseClass(word: text.lowercased()) { return cause }
    let words = CauseClass.allCases.map(\.word)
    let closest = Suggestion.closest(to: text, in: words).map { " Did you mean '\($0)'?" } ?? ""
    throw ValidationError("expected \(words.joined(separator: ", ")).\(closest)")
}

func readTime(_ text: String) throws -> UnixTime {
    try TimeArgument.parse(text, now: .now, timeZone: .current)
}
