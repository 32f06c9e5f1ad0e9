// `status`: a store's contents and losses. StatusView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallIngest
internal import StallModel
import StallQuery

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Summarize a store: contents, coverage, and losses.",
        discussion: """
            EXAMPLES
              stallctl status
              stallctl status --json | jq .report_count
            """)

    @OptionGroup var source: SeveralStoresOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let store = try source.open()
        let answer = try StatusAnswer(of: store)
        let quarantine = Quarantine(store: store.path)
        if output.json {
            let row = StatusRow(
                answer, quarantinedCount: quarantine.count, at: output.terminal.now)
            try Output.write(json: [row])
        } else {
            let terminal = output.terminal
            let lines =
                StatusView.lines(for: answer.status, on: terminal)
                + StatusView.lines(for: quarantine) + answer.exposure.lines
            try output.show(lines.flatMap { $0.wrapped(to: terminal.columns, indentation: 2) })
        }
    }
}
