// `tree`: the call tree of the time lost. CallTree aggregates, TreeView.swift renders.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
import StallQuery

struct Tree: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the call tree of the time lost in stalls.",
        discussion: """
            Starts with the innermost functions, each with its callers below it; with
            --invert, with the outermost functions and what they called. Times add up
            to the total of top. Run-loop, thunk and runtime frames are hidden.

            --focus and --ignore match a substring of a function's name, or the whole
            name if a glob is given: 'Gallery.*'.

            EXAMPLES
              stallctl tree --since 7d
              stallctl tree --frames app
              stallctl tree --invert --focus relayout
              stallctl tree --ignore sleepInTimer --min-share 5
              stallctl tree --json | jq -r 'select(.depth == 0) | .function'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions
    @OptionGroup var verdicts: VerdictOptions

    @Flag(help: "Start with the outermost functions.")
    var invert = false

    @Option(
        help: ArgumentHelp(
            "Include only stacks with this function. Repeatable.", valueName: "name"))
    var focus: [String] = []

    @Option(
        help: ArgumentHelp(
            "Exclude stacks with this function. Repeatable.", valueName: "name"))
    var ignore: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Hide functions with a smaller share of the time, in percent.", valueName: "percent"))
    var minShare = 1.0

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum depth of the call tree.", valueName: "count"))
    var depth: Int?

    @Option(
        help: ArgumentHelp(
            "Frames to show: relevant (hides run-loop, thunk and runtime frames), app, or all.",
            valueName: "kind"))
    var frames = TreeSelection.Frames.relevant

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var rows: RowOptions

    func validate() throws {
        guard (0...100).contains(minShare) else {
            throw ValidationError("--min-share must be 0 to 100; it was \(minShare).")
        }
        try expectOneOrMore(depth, "--depth")
    }

    func run() throws {
        let store = try source.open()
        var selection = TreeSelection()
        selection.focus = focus.map(NamePattern.init)
        selection.ignore = ignore.map(NamePattern.init)
        selection.frames = frames
        let filter = verdicts.narrowing(filters.filter)
        let tree = try CallTree(
            of: store, filter, direction: invert ? .topDown : .bottomUp,
            selection: selection, rules: grouping.rules(toRead: store))
        let shown = ShownTree(tree, minShare: minShare / 100, depth: depth)
        if rows.output.json {
            try Output.write(json: shown.rows)
        } else if rows.csv {
            try Output.write(csv: TreeRow.csvHeader, shown.rows.map(\.csvFields))
        } else {
            let view = TreeView(
                tree: shown, arrow: invert ? "-> " : "<- ",
                words: RankedWords(filter.rankedVerdicts), terminal: rows.output.terminal)
            try rows.output.show(view.lines)
        }
        if tree.stallCount == 0, !tree.isSelectionEmpty {
            let names = (focus + ignore).map { "'\($0)'" }.joined(separator: ", ")
            say("stallctl: no stack matches --focus and --ignore: \(names)".printable)
        }
        if tree.isSelectionEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}

extension TreeSelection.Frames: ExpressibleByArgument {
    init?(argument: String) {
        // The former name of `relevant`, accepted for existing scripts.
        self.init(rawValue: argument == "telling" ? "relevant" : argument)
    }
}
