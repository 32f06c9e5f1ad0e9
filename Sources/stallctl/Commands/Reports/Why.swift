// `why`: how a report was grouped. Explanation.swift finds out, WhyView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
import StallQuery

struct Why: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Explain how a report was grouped: which rule kept or dropped each frame.",
        discussion: """
            A group is named by up to three functions of the app: the innermost one
            that accounts for most of the stall's time, then its callers. Those are
            the frames marked > 1, 2 and 3.

            EXAMPLES
              stallctl why 0193c1e2f0aa
              stallctl why 0193c1e2f0aa --json | jq '.stacks[0].frames[] | select(.key)'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var report: ReportArgument
    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let store = try source.open()
        let explanation = Explanation(
            try report.find(in: store, grouping), rules: try grouping.rules(toRead: store))
        if output.json {
            try Output.write(json: [WhyRow(explanation)])
        } else {
            let view = WhyView(explanation: explanation, terminal: output.terminal)
            try output.show(view.lines)
        }
    }
}
