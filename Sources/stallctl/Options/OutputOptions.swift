// The output format of a command.

internal import ArgumentParser
internal import StallModel

struct OutputOptions: ParsableArguments {
    @Flag(help: "Write JSON, one object per line; durations in milliseconds, times in UTC.")
    var json = false

    @OptionGroup var colors: ColorOptions
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
        help: ArgumentHelp("When to use color.", valueName: "when"))
    var color = ColorChoice.auto

    var terminal: Terminal { .standardOutput(color: color) }
}

extension ColorChoice: ExpressibleByArgument {}
