// `top`: ranks groups by time lost. RankingQuestion queries and ranks, TopView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallFormats
internal import StallModel
internal import StallQuery

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Rank the functions that blocked run loops, by the time lost.",
        discussion: """
            Reports that share their key app frames form one group. Delays that are
            not the app's own (CPU starvation, throttling, a suspended process, a
            debugger) are counted below the table and not ranked; so is the part of
            a stall in which its thread waited for a CPU or was stopped. --verdict
            ranks such reports, and a profiler's samples, instead of stalls; --state
            blocking ranks violations: calls that may block, where the app forbids it.

            EXAMPLES
              stallctl top
              stallctl top --since 7d --app photos --by p95
              stallctl top --group version
              stallctl top --watch --since 1h
              stallctl top --store eu.sqlite --store us.sqlite
              stallctl top --verdict sampled --by count
              stallctl top --state blocking
              stallctl top --json | jq -r '[.rank, .total_ms, .title] | @tsv'
            """)

    @OptionGroup var source: SeveralStoresOptions
    @OptionGroup var filters: FilterOptions
    @OptionGroup var verdicts: VerdictOptions

    @Option(
        help: ArgumentHelp(
            "Sort order. Default: total; of violations alone, count.", valueName: "order"))
    var by: RankingOrder?

    @Option(help: ArgumentHelp("Group reports by this key.", valueName: "key"))
    var group = GroupKey.signature

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of groups to show.", valueName: "count"))
    var limit = 20

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Number of key frames to show per group (1-3).",
            valueName: "count"))
    var frames = 2

    @Flag(
        help:
            "Refresh continuously, like top(1). Enter opens a group and a report, / filters; keys change order and grouping; q quits."
    )
    var watch = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Refresh interval for --watch, in seconds.", valueName: "seconds"))
    var interval = 2

    @Flag(help: "Write Markdown, for an issue tracker.")
    var markdown = false

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        try expectOneOrMore(frames, "--frames")
        guard (1...3600).contains(interval) else {
            throw ValidationError("--interval must be 1 to 3600; it was \(interval).")
        }
        if watch, rows.csv || rows.output.json || markdown {
            throw ValidationError("--watch cannot be used with --csv, --json or --markdown.")
        }
        if watch { try source.expectOneStore(for: "--watch") }
        if markdown, rows.csv || rows.output.json {
            throw ValidationError("--markdown cannot be used with --csv or --json.")
        }
    }

    var filter: ReportFilter { verdicts.narrowing(filters.filter) }
    /// How long a call that is forbidden took matters less than how often it was made.
    var order: RankingOrder { by ?? (filter.rankedVerdicts == [.blocking] ? .count : .total) }

    func run() throws {
        let store = try source.open(
            expecting: .largest(limit, filter, by: group, order: order))
        guard !watch else { return try watch(store) }
        let question = try grouping.question(to: store, filter, by: group)
        // The holders are read from the examples that the ranking names.
        let (ranking, holders, calls) = try store.consistently {
            let ranking = try question.ranking(by: order, limit: limit)
            let isText = !rows.output.json && !rows.csv
            return try (
                ranking,
                isText ? ranking.lockHolders(in: store, limit: limit, rules: question.rules) : [:],
                isText ? ranking.blockingCalls(in: store, limit: limit) : [:]
            )
        }
        if rows.output.json {
            try Output.write(json: ranking.rows.prefix(limit))
        } else if rows.csv {
            try Output.write(
                csv: HotspotCSV.header, ranking.rows.prefix(limit).map(HotspotCSV.fields))
        } else {
            let view = TopView(
                ranking: ranking, limit: limit, frameCount: frames, storeOptions: source.stores,
                exampleStore: try source.path(ofReport: ranking.overview.example),
                holders: holders, calls: calls,
                terminal: markdown ? .document : rows.output.terminal)
            try rows.output.show(markdown ? view.markdownLines : view.lines)
        }
        if ranking.overview.isEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}

extension RankingOrder: ExpressibleByArgument {}
extension GroupKey: ExpressibleByArgument {}
