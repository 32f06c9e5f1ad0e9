// The output format of a command.
//
// No group of options holds another one: a debug build of ArgumentParser validates each group, with all in it, four times
// as often as the one around it; four levels deep, 256 times.

internal import ArgumentParser
internal import Glibc
internal import StallModel

struct OutputOptions: ParsableArguments {
    static let jsonHelp: ArgumentHelp =
        "Write JSON, one object per line; durations in milliseconds, times in UTC."
    static let colorHelp = ArgumentHelp(
        "When to use color. Default: auto, or as in the settings file.", valueName: "when")
    static let noPagerHelp: ArgumentHelp = "Do not show long text with a pager."

    @Flag(help: jsonHelp) var json = false
    @Option(help: colorHelp) var color: ColorChoice?
    @Flag(help: noPagerHelp) var noPager = false

    /// The pager for long text, if standard output is a terminal.
    private var pager: Pager? {
        noPager || isatty(STDOUT_FILENO) != 1 ? nil : Pager.chosen()
    }

    /// The terminal that is written to without a pager.
    var bareTerminal: Terminal {
        .standardOutput(color: color ?? UserSettings.current.color ?? .auto)
    }

    /// The terminal that text is rendered for.
    var terminal: Terminal {
        var terminal = bareTerminal
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

    @Flag(help: OutputOptions.jsonHelp) private var json = false
    @Option(help: OutputOptions.colorHelp) private var color: ColorChoice?
    @Flag(help: OutputOptions.noPagerHelp) private var noPager = false

    /// The options of a command without rows, which this one has, too.
    var output: OutputOptions {
        var options = OutputOptions()
        (options.json, options.color, options.noPager) = (json, color, noPager)
        return options
    }

    func validate() throws {
        if csv && json { throw ValidationError("--csv and --json cannot be used together.") }
    }
}

extension ColorChoice: ExpressibleByArgument {}
