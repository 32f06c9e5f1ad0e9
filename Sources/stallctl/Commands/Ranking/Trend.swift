// `trend`: one group, or all stalls, over time. TrendQuestion queries, TrendView.swift renders.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
import StallQuery

struct Trend: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show one group, or all stalls, over time.",
        discussion: """
            Without a name, all stalls. A name is a substring of a group's title, a
            glob for the whole title, or a prefix of the signature in top --json.
            Days and hours are in this machine's time zone; in JSON and CSV, in UTC.

            EXAMPLES
              stallctl trend
              stallctl trend waitForWorker --since 4w
              stallctl trend --by hour --since yesterday
              stallctl trend --json | jq -r '[.begin, .total_ms] | @tsv'
            """)

    @OptionGroup var source: SeveralStoresOptions

    @Argument(
        help: ArgumentHelp(
            "The groups to show: a title, glob or signature prefix.", valueName: "name"),
        completion: StoreCompletion.group.kind)
    var name: String?

    @OptionGroup var filters: FilterOptions
    @OptionGroup var verdicts: VerdictOptions

    @Option(
        help: ArgumentHelp(
            "Bucket size. Default: hour for ranges up to two days, otherwise day.",
            valueName: "unit"
        ))
    var by: TrendUnit?

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func run() throws {
        let store = try source.open()
        let terminal = rows.output.terminal
        let isData = rows.csv || rows.output.json
        let zone = isData ? .gmt : terminal.timeZone
        let filter = verdicts.narrowing(filters.filter)
        let question = TrendQuestion(
            try grouping.question(to: store, filter), name: name, unit: by
        ) { try .ofCalendar(from: $0, through: $1, in: $2, of: zone) }
        let trend = try question.trend()
        if rows.output.json {
            try Output.write(json: trend.rows)
        } else if rows.csv {
            try Output.write(csv: TrendRow.csvHeader, trend.rows.map(\.csvFields))
        } else {
            let view = TrendView(
                trend: trend, words: RankedWords(filter.rankedVerdicts), terminal: terminal)
            try rows.output.show(view.lines)
        }
        if trend.totals.count == 0 { try filters.explainEmptyAnswer(from: store) }
    }
}

extension TrendUnit: ExpressibleByArgument {}
