// `list`: the newest reports, or those of a group. ListingQuestion queries, ListView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List reports, newest first, or those of one group.",
        discussion: """
            A group is given as a substring of its title, a glob for the whole title,
            or a prefix of the signature in top --json.

            EXAMPLES
              stallctl list --since 2h
              stallctl list waitForWorker --sort lasted
              stallctl list --state hang --min-duration 2s
              stallctl list --app photos --loop main --limit 100
              stallctl list --state blocking
              stallctl list --verdict sampled
              stallctl list --json | jq -r 'select(.state == "hang") | .id'
            """)

    @OptionGroup var source: StoreOptions

    @Argument(
        help: ArgumentHelp(
            "Include only reports of this group: a title, glob or signature prefix.",
            valueName: "group"),
        completion: StoreCompletion.group.kind)
    var group: String?

    @OptionGroup var filters: FilterOptions
    @OptionGroup var verdicts: VerdictOptions

    @Option(help: ArgumentHelp("Sort order: newest or longest first.", valueName: "order"))
    var sort = ListingQuestion.Order.began

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Include only stalls at least this long: 500ms, 2s, 1.5m.", valueName: "duration"),
        transform: readDuration)
    var minDuration = Duration.zero

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of reports to show.", valueName: "count"))
    var limit = 20

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
    }

    func run() throws {
        let store = try source.open()
        var filter = verdicts.narrowing(filters.filter)
        // Applied to what was read: the short ids are unique among reports of any state.
        let states = filter.states ?? []
        filter.states = nil
        var question = ListingQuestion(
            try grouping.question(to: store, filter), limit: limit)
        question.group = group
        question.states = states
        question.minDuration = minDuration
        question.order = sort
        let listing = try question.listing()
        if rows.output.json {
            try Output.write(json: listing.rows)
        } else if rows.csv {
            try Output.write(csv: ListingRow.csvHeader, listing.rows.map(\.csvFields))
        } else {
            let view = ListView(listing: listing, terminal: rows.output.terminal)
            try rows.output.show(view.lines)
        }
        if listing.rows.isEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}

extension ListingQuestion.Order: ExpressibleByArgument {}

func readDuration(_ text: String) throws -> Duration {
    let units = ["us": 0.000_001, "ms": 0.001, "s": 1, "m": 60, "h": 3600]
    guard let match = text.wholeMatch(of: /(\d{1,6}(?:\.\d{1,6})?) ?(us|ms|s|m|h)/.ignoresCase()),
        let number = Double(match.1), let unit = units[match.2.lowercased()]
    else {
        throw ValidationError(
            "'\(text)' is not a duration; expected one such as 500ms, 2s or 1.5m.")
    }
    return .seconds(number * unit)
}
