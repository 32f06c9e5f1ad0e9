// `list`: the newest reports. Listing.swift asks and tells.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List reports, newest first.",
        discussion: """
            EXAMPLES
              stallctl list --since 2h
              stallctl list --app photos --loop main --limit 100
              stallctl list --json | jq -r 'select(.state == "hang") | .id'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions

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
        let listing = try Listing(
            store: store, filter: filters.filter, rules: grouping.rules(forStore: store.path),
            limit: limit)
        if rows.output.json {
            try Output.write(json: listing.rows)
        } else if rows.csv {
            try Output.write(csv: ListingRow.csvHeader, listing.rows.map(\.csvFields))
        } else {
            let view = ListView(listing: listing, terminal: rows.output.colors.terminal)
            try Output.write(lines: view.lines)
        }
        if listing.rows.isEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}
