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
        if output.json {
            try Output.write(json: [
                StatusView.Row(status, quarantinedCount: quarantine.count)
            ])
        } else {
            let more = try ExposureView.lines(
                exposure: store.exposure(ReportFilter()),
                suppressed: store.suppressedStalls(ReportFilter()))
            try Output.write(
                lines: StatusView.lines(for: status, on: output.colors.terminal)
                    + StatusView.lines(for: quarantine) + more)
        }
    }
}
