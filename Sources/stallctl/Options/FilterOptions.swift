// The reports to include; shared by every command that reads reports.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct FilterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Include only reports from this app; '*' for every app. Repeatable. Default: the settings file's.",
            valueName: "name"),
        completion: StoreCompletion.app.kind)
    var app: [String] = []

    @Option(
        help: ArgumentHelp(
            "Include only reports from this version of the app. Repeatable.", valueName: "version"),
        completion: StoreCompletion.version.kind)
    var version: [String] = []

    @Option(
        help: ArgumentHelp("Include only reports from this host. Repeatable.", valueName: "name"),
        completion: StoreCompletion.host.kind)
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            "Include only reports of the loop with this name. Repeatable.", valueName: "name"),
        completion: StoreCompletion.loop.kind)
    var loop: [String] = []

    @Option(
        help: ArgumentHelp(
            "Include only reports with this cause: lock, disk, cpu, ... Repeatable.",
            valueName: "cause"),
        completion: .list(CauseClass.allCases.map(\.word)), transform: readCause)
    var cause: [CauseClass] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Include only stalls that began at or after this time: 2h, 7d, today, 2026-11-21, 2026-11-21T09:30:00Z.",
            valueName: "time"),
        transform: readTime)
    var since: UnixTime?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Include only stalls that began before this time.", valueName: "time"),
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
        filter.apps = apps
        filter.versions = version
        filter.hosts = host
        filter.loops = loop
        filter.causes = cause.isEmpty ? nil : Set(cause)
        filter.since = since
        filter.until = until
        return filter
    }

    /// The apps as given, or else as in the settings file; empty for every app.
    var apps: [String] {
        let named = app.isEmpty ? UserSettings.current.apps : app
        return named.contains("*") ? [] : named
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
