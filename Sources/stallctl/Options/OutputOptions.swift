// The output format of a command.

internal import ArgumentParser
internal import Glibc
internal import StallModel

struct OutputOptions: ParsableArguments {
    @Flag(help: "Write JSON, one object per line; durations in milliseconds, times in UTC.")
    var json = false

    @OptionGroup var colors: ColorOptions

    @Flag(help: "Do not show long text with a pager.")
    var noPager = false

    /// The pager for long text, if standard output is a terminal.
    private var pager: Pager? {
        noPager || isatty(STDOUT_FILENO) != 1 ? nil : Pager.chosen()
    }

    /// The terminal that text is rendered for.
    var terminal: Terminal {
        var terminal = colors.terminal
        if let pager, !pager.showsLinks { terminal.usesLinks = false }
        return terminal
    }

    /// Writes lines of text for people: with the pager if they do not fit the window.
    func show(_ lines: [String]) throws {
        if let pager, let window = Terminal.windowSize,
            Pager.isLong(lines, columns: window.columns, rows: window.rows), pager.show(lines)
        {
            return
        }
        try Output.write(lines: lines)
    }
}

/// For commands that print rows.
struct RowOptions: ParsableArguments {
    @Flag(help: "Write CSV; durations in milliseconds, times in UTC.")
    var csv = false

    @OptionGroup var output: OutputOptions

    func validate() throws {
        if csv && output.json { throw ValidationError("--csv and --json cannot be used together.") }
    }
}

struct ColorOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "When to use color. Default: auto, or as in the settings file.", valueName: "when"))
    var color: ColorChoice?

    var terminal: Terminal {
        .standardOutput(color: color ?? UserSettings.current.color ?? .auto)
    }
}

extension ColorChoice: ExpressibleByArgument {}
