// `diff`: what got worse from one version, time or store to another. Comparison decides, DiffView.swift tells.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel

struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare two versions, time ranges or stores.",
        discussion: """
            Time lost is compared per watched hour. A group counts as worse or better
            if the change is statistically significant: the 95% confidence interval of
            the ratio does not include 1. If a store does not record how long loops
            were watched, equal watched time is assumed on both sides; if it does for
            some loops, those are compared.

            A and B are versions, time ranges such as 2026-11-01..2026-11-07 or 7d..,
            or paths of stores. The filters apply to both.

            EXAMPLES
              stallctl diff 2.2.9 2.3.0 --app photos
              stallctl diff 2026-11-01..2026-11-07 2026-11-08..2026-11-14
              stallctl diff before.sqlite after.sqlite
              stallctl diff 2.2.9 2.3.0 --fail-above 1.2 || echo 'it got slower'
            """)

    @OptionGroup var source: StoreOptions

    @Argument(help: ArgumentHelp("The baseline, usually the old version.", valueName: "A"))
    var first: String

    @Argument(help: ArgumentHelp("The comparison set, usually the new version.", valueName: "B"))
    var second: String

    @OptionGroup var filters: FilterOptions

    @Option(help: ArgumentHelp("Group reports by this key.", valueName: "key"))
    var group = GroupKey.signature

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Exit with status 2 if a group, or the total, regressed by more than this ratio and the change is statistically significant.",
            valueName: "ratio"))
    var failAbove: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of groups to show.", valueName: "count"))
    var limit = 20

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        if let failAbove, !(failAbove >= 1 && failAbove.isFinite) {
            throw ValidationError("--fail-above must be 1 or more; it was \(failAbove).")
        }
    }

    func run() throws {
        let sides = try [first, second].map(side)
        let rankings = try RankingQuestion.rankings(sides.map(\.question))
        for (side, ranking) in zip(sides, rankings) where ranking.overview.isEmpty {
            let nothing = try NothingToCompare(
                side.question, side.set, side.name, isWatched: ranking.watched.total != nil)
            // Nobody looked, or it was mistyped: to call that an improvement would let everything pass.
            if failAbove != nil, !nothing.isWatched { throw nothing }
            say("stallctl: \(nothing)".printable)
        }
        let comparison = Comparison(rankings[0], rankings[1])
        if rows.output.json {
            try Output.write(json: DiffRow.rows(comparison))
        } else if rows.csv {
            try Output.write(csv: DiffRow.csvHeader, DiffRow.rows(comparison).map(\.csvFields))
        } else {
            let view = DiffView(
                comparison: comparison, names: sides.map(\.name), key: group, limit: limit,
                terminal: rows.output.colors.terminal)
            try Output.write(lines: view.lines)
        }
        if let failAbove, comparison.exceeds(failAbove) { throw ExitCode(2) }
    }

    /// What one argument means.
    private func side(
        _ text: String
    ) throws -> (name: String, set: ComparedSet, question: RankingQuestion) {
        var filter = filters.filter
        var path = source.path
        let set: ComparedSet
        do {
            set = try ComparedSet(
                text, now: .now, timeZone: .current,
                exists: FileManager.default.fileExists(atPath:))
        } catch {
            throw ValidationError("\(error)")
        }
        switch set {
        case .version(let version): filter.versions = [version]
        case .range(let since, let until):
            filter.since = [filter.since, since].compactMap(\.self).max()
            filter.until = [filter.until, until].compactMap(\.self).min()
        case .store(let other): path = other
        }
        let question = try grouping.question(
            to: StoreOptions.open(path: path), filter, by: group, rulesOf: source.path)
        return (text, set, question)
    }
}

/// One side of the comparison has no report.
private struct NothingToCompare: Error, CustomStringConvertible {
    var path: String
    var name: String
    /// They were watched nevertheless.
    var isWatched: Bool
    var reason = ""

    init(
        _ question: RankingQuestion, _ set: ComparedSet, _ name: String, isWatched: Bool
    ) throws {
        path = question.store.path
        self.name = name
        self.isWatched = isWatched
        guard case .version(let version) = set else { return }
        let apps = question.filter.apps
        let runs = try question.store.loops().map(\.run)
        let known = Set(
            runs.filter { apps.isEmpty || apps.contains($0.app) }.map(\.version)
        ).sorted()
        guard !known.contains(version) else { return }
        reason = "; there is no version '\(version)'"
        if !apps.isEmpty { reason += " of \(listed(apps))" }
        reason +=
            Suggestion.closest(to: version, in: known).map { ": did you mean '\($0)'?" } ?? "."
        let names = known.prefix(10).joined(separator: ", ") + (known.count > 10 ? ", ..." : "")
        reason += known.isEmpty ? " It has none." : " Known: \(names)"
    }

    var description: String {
        "\(path): no report" + (isWatched ? "" : " and no watched time") + " of '\(name)'" + reason
    }
}
