// `tree`: the calls under which time was lost. CallTree adds up, TreeView.swift tells.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel

struct Tree: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the calls under which loops lost their time.",
        discussion: """
            Begins with the innermost functions, each with its callers below it; with
            --invert, with the outermost ones and what they called. All times add up
            to what top says was lost. What runs loops and adapts calls is left out.

            A name for --focus and --ignore is a part of a function's name, or a
            pattern for all of it: 'Gallery.*'.

            EXAMPLES
              stallctl tree --since 7d
              stallctl tree --frames app
              stallctl tree --invert --focus relayout
              stallctl tree --ignore sleepInTimer --min-share 5
              stallctl tree --json | jq -r 'select(.depth == 0) | .function'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Flag(help: "Begin with the outermost functions.")
    var invert = false

    @Option(
        help: ArgumentHelp(
            "Only stacks with this function; repeat it for several.", valueName: "name"))
    var focus: [String] = []

    @Option(
        help: ArgumentHelp(
            "No stacks with this function; repeat it for several.", valueName: "name"))
    var ignore: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Leave out what has a smaller share of the time.", valueName: "percent"))
    var minShare = 1.0

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Show at most so many calls below one another.", valueName: "count"))
    var depth: Int?

    @Option(
        help: ArgumentHelp(
            "Which functions: telling (all but run loops, thunks, the runtime), app (the app's own) or all.",
            valueName: "kind"))
    var frames = TreeSelection.Frames.telling

    @OptionGroup var grouping: GroupingOptions
    @OptionGroup var output: OutputOptions

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
        let tree = try CallTree(
            of: store, filters.filter, direction: invert ? .topDown : .bottomUp,
            selection: selection, rules: grouping.rules(forStore: store.path))
        let shown = ShownTree(tree, minShare: minShare / 100, depth: depth)
        if output.json {
            try Output.write(json: shown.rows)
        } else {
            let view = TreeView(
                tree: shown, arrow: invert ? "-> " : "<- ", terminal: output.colors.terminal)
            try Output.write(lines: view.lines)
        }
        if tree.stallCount == 0, !tree.isSelectionEmpty {
            let names = (focus + ignore).map { "'\($0)'" }.joined(separator: ", ")
            say("stallctl: no stack is left by --focus and --ignore of \(names)".printable)
        }
        if tree.isSelectionEmpty { try filters.explainEmptyAnswer(from: store) }
    }
}

extension TreeSelection.Frames: ExpressibleByArgument {}
