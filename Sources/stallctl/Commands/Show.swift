internal import ArgumentParser
internal import StallModel
internal import StallStore

struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show one report: what stalled, when, for how long, and the stacks.",
        discussion: """
            The frame marked > is the app frame that names the report's group. In the
            timeline, = is time with that function on the stack, - is time without it.

            EXAMPLES
              stallctl show 0193c1e2f0aa
              stallctl show 0193c1e2f0aa --json | jq '.samples[].stack[0].function'
            """)

    @OptionGroup var source: StoreOptions

    @Argument(help: ArgumentHelp("The report's id, or enough of its beginning.", valueName: "id"))
    var id: String

    @Option(help: ArgumentHelp("Show at most this many different stacks.", valueName: "count"))
    var stacks = 3

    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard stacks > 0 else {
            throw ValidationError("--stacks must be 1 or more; it was \(stacks).")
        }
        guard !id.isEmpty, id.allSatisfy({ $0.isHexDigit && $0.isASCII || $0 == "-" }) else {
            throw ValidationError(
                "'\(id)' is not an id; expected hexadecimal digits such as 'stallctl list' prints.")
        }
    }

    func run() throws {
        let store = try source.open()
        let report = try report(in: store)
        if output.json {
            let images = try store.images(ofRun: report.run.id)
            try Output.write(json: [ReportRow(report, images: images)])
        } else {
            let view = ReportView(
                report: report, stackLimit: stacks, terminal: output.colors.terminal)
            try Output.write(lines: view.lines)
        }
    }

    /// The report that is meant; an unknown id is answered with the one that it nearly is.
    private func report(in store: ReportStore) throws -> StallReport {
        do {
            return try store.report(idPrefix: id)
        } catch {
            guard case .unknownReport(let prefix) = error else { throw error }
            let ids = try store.summaries(ReportFilter()).reports.map(\.id)
            throw UnknownReport(
                path: store.path, prefix: prefix, suggestion: ShortIDs.nearMiss(of: prefix, in: ids)
            )
        }
    }
}

/// No report's id begins as it was typed.
private struct UnknownReport: Error, CustomStringConvertible {
    var path: String
    var prefix: String
    var suggestion: String?

    var description: String {
        "\(path): no report's id begins with \(prefix); "
            + (suggestion.map { "did you mean \($0)?" } ?? "'stallctl list' prints the ids")
    }
}
