// `top`: what to fix first. RankingQuestion asks and ranks, TopView.swift tells people.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rank the places in the code where loops lost the most time.",
        discussion: """
            Reports that share their top app frames are one group. Delays that are
            not the app's own (no CPU to be had, the process stopped, a debugger)
            are counted below the table, not ranked.

            EXAMPLES
              stallctl top
              stallctl top --since 7d --app photos --by p95
              stallctl top --group version
              stallctl top --watch --since 1h
              stallctl top --json | jq -r '[.rank, .total_ms, .title] | @tsv'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Option(help: ArgumentHelp("What to rank by.", valueName: "order"))
    var by = RankingOrder.total

    @Option(help: ArgumentHelp("What makes one group.", valueName: "key"))
    var group = GroupKey.signature

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Show at most this many groups.", valueName: "count"))
    var limit = 20

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Show at most this many functions a group, of the up to three that name it.",
            valueName: "count"))
    var frames = 2

    @Flag(help: "Keep it on the screen and refresh it; keys change order and groups, q quits.")
    var watch = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How often --watch asks again.", valueName: "seconds"))
    var interval = 2

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        try expectOneOrMore(frames, "--frames")
        guard (1...3600).contains(interval) else {
            throw ValidationError("--interval must be 1 to 3600; it was \(interval).")
        }
        if watch, rows.csv || rows.output.json {
            throw ValidationError("--watch does not go with --csv and --json.")
        }
    }

    func run() throws {
        let store = try source.open()
        guard !watch else { return try watch(store) }
        let question = try grouping.question(to: store, filters.filter, by: group)
        let ranking = try question.ranking(by: by, limit: limit)
        if rows.output.json {
            try Output.write(json: ranking.rows.prefix(limit))
        } else if rows.csv {
            try Output.write(
                csv: HotspotCSV.header, ranking.rows.prefix(limit).map(HotspotCSV.fields))
        } else {
            let view = TopView(
                ranking: ranking, limit: limit, frameCount: frames, storeOption: source.store,
                holders: try ranking.lockHolders(in: store, limit: limit, rules: question.rules),
                terminal: rows.output.colors.terminal)
            try Output.write(lines: view.lines)
        }
        if ranking.overview.isEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}

extension RankingOrder: ExpressibleByArgument {}
extension GroupKey: ExpressibleByArgument {}
