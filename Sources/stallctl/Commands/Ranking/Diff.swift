// `diff`: compares two versions, time ranges or stores. Comparison computes, DiffView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare two versions, time ranges or stores.",
        discussion: """
            Time lost is compared per watched hour. A group counts as worse or better
            if the change is statistically significant: less than one in twenty
            comparisons of equal sides calls any of their groups so. What is compared
            are hosts, or runs of the same hosts if hosts are few; with 3 hosts no
            change is significant. If watched time is not recorded, equal watched time
            is assumed on both sides; if it is recorded for some loops, only those are
            compared.

            A and B are versions, time ranges such as 2026-11-01..2026-11-07 or 7d..,
            or paths of stores. The filters apply to both.

            EXAMPLES
              stallctl diff 2.2.9 2.3.0 --app photos
              stallctl diff 2026-11-01..2026-11-07 2026-11-08..2026-11-14
              stallctl diff before.sqlite after.sqlite
              stallctl diff 2.2.9 2.3.0 --fail-above 1.2 || echo 'it got slower'
            """)

    @OptionGroup var source: SeveralStoresOptions

    @Argument(
        help: ArgumentHelp("The baseline, usually the old version.", valueName: "A"),
        completion: StoreCompletion.version.kind)
    var first: String

    @Argument(
        help: ArgumentHelp("The comparison set, usually the new version.", valueName: "B"),
        completion: StoreCompletion.version.kind)
    var second: String

    @OptionGroup var filters: FilterOptions

    @Option(help: ArgumentHelp("Group reports by this key.", valueName: "key"))
    var group = GroupKey.signature

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Exit with status 2 if a group, or the total, lost more than this many times as much, beyond chance.",
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
        let sides = try ComparedQuestion.both(
            [first, second], stores: source.paths, filters: filters, grouping: grouping, by: group)
        let rankings = try RankingQuestion.rankings(sides.map(\.question))
        for (side, ranking) in zip(sides, rankings) where ranking.overview.isEmpty {
            let nothing = try side.nothing(isWatched: ranking.watched.total != nil)
            // An unwatched or mistyped side must not pass as an improvement.
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
                terminal: rows.output.terminal)
            try rows.output.show(view.lines)
        }
        guard let failAbove else { return }
        if let reason = comparison.cannotTell {
            say("stallctl: --fail-above cannot tell: \(reason)".printable)
        }
        if comparison.exceeds(failAbove) { throw ExitCode(2) }
        // Each alone would have failed; a limit for many groups asks for more.
        for group in comparison.groups where group.ratio.low > failAbove {
            say(
                "stallctl: --fail-above passes '\(group.title)': its interval begins at \(group.ratio.low.short), but as one of \(counted(comparison.groups.count, "group")) that may be chance"
                    .printable)
        }
    }
}
