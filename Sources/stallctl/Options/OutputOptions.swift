// How a command's answer is written.

internal import ArgumentParser
internal import StallModel

struct OutputOptions: ParsableArguments {
    @Flag(help: "Write JSON, one object a line; durations are milliseconds, times UTC.")
    var json = false

    @OptionGroup var colors: ColorOptions

    /// Writes one line of JSON for each object.
    static func write(_ objects: some Sequence<some Encodable>) throws {
        var output = StandardOutput()
        for object in objects { try output.write(JSONLines.line(object)) }
        try output.flush()
    }

    /// Writes lines of text.
    static func write(lines: some Sequence<String>) throws {
        var output = StandardOutput()
        for line in lines { try output.write(line + "\n") }
        try output.flush()
    }
}

struct ColorOptions: ParsableArguments {
    @Option(help: ArgumentHelp("When to use colour: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    var terminal: Terminal { .standardOutput(color: color) }
}

extension ColorChoice: ExpressibleByArgument {}
