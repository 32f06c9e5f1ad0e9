// `show`: one report in full. ReportView.swift renders text, StallFormats JSON.

internal import ArgumentParser
internal import StallAnalysis
internal import StallFormats
internal import StallModel
import StallQuery

struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show one report: what stalled, when, for how long, why, and the stacks.",
        discussion: """
            The frame marked > is the app frame that names the report's group. In the
            timeline, = marks samples with that function on the stack, - samples
            without it.

            EXAMPLES
              stallctl show 0193c1e2f0aa
              stallctl show latest
              stallctl show 1                 the example of the first group in top
              stallctl show waitForWorker
              stallctl show 0193c1e2f0aa --json | jq '.samples[].stack[0].function'
              stallctl show latest --format apple > stall.crash
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var report: ReportArgument

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of distinct stacks to show.", valueName: "count"))
    var stacks = 3

    @Flag(help: "Write Markdown, for an issue tracker.")
    var markdown = false

    /// Another program's format.
    enum Format: String, ExpressibleByArgument, CaseIterable { case apple }

    @Option(help: "Write Apple's crash text, for viewers that take it.")
    var format: Format?

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        try expectOneOrMore(stacks, "--stacks")
        if format != nil, markdown || output.json {
            throw ValidationError("--format cannot be used with --markdown or --json.")
        }
        if markdown, output.json {
            throw ValidationError("--markdown cannot be used with --json.")
        }
    }

    func run() throws {
        let store = try source.open()
        let rules = try grouping.rules(toRead: store)
        if output.json {
            let grouper = DefaultGrouper(rules: rules)
            let lines = try store.consistently {
                try report.findAll(in: store, grouping).map { report in
                    let group = report.signature(by: grouper).group
                    let line = try ReportText(report, group: group)
                        .line(images: store.images(ofRun: report.run.id))
                    return String(decoding: line, as: UTF8.self)
                }
            }
            return try Output.write(jsonLines: lines)
        }
        if format == .apple {
            let texts = try store.consistently {
                try report.findAll(in: store, grouping).map { report in
                    var text = AppleCrashReport(
                        report, images: try store.images(ofRun: report.run.id))
                    return text.text()
                }
            }
            return try Output.write(lines: texts)
        }
        let reports = try report.findAll(in: store, grouping)
        var lines: [String] = []
        for (index, report) in reports.enumerated() {
            if reports.count > 1 {
                lines += index == 0 ? [] : [""]
                lines.append(
                    "Report \(index + 1) of \(reports.count) with this id: their sources disagree."
                )
            }
            let view = ReportView(
                report: report, stackLimit: stacks, rules: rules,
                terminal: markdown ? .document : output.terminal)
            lines += markdown ? view.markdownLines : view.lines
        }
        try output.show(lines)
    }
}
