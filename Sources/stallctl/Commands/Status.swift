// `status`: what a store holds and what it could not keep. StatusView.swift tells.

internal import ArgumentParser
internal import StallModel
internal import StallStore

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say what a store holds, and what it could not keep.",
        discussion: """
            EXAMPLES
              stallctl status
              stallctl status --json | jq .report_count
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let store = try source.open()
        let status = try store.status()
        let quarantine = Quarantine(store: store.path)
        let exposure = try ExposureView(
            exposure: store.watchedLoops(ReportFilter(), withLengths: true),
            lost: status.lostByLoop, watchedLost: status.watchedLostByLoop,
            suppressed: store.suppressedStalls(ReportFilter()))
        if output.json {
            try Output.write(json: [
                StatusView.Row(status, exposure, quarantinedCount: quarantine.count)
            ])
        } else {
            try Output.write(
                lines: StatusView.lines(for: status, on: output.colors.terminal)
                    + StatusView.lines(for: quarantine) + exposure.lines)
        }
    }
}
