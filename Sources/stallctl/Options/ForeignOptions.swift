// Options for other programs' reports, which may lack an app, a version or a duration.

internal import ArgumentParser
internal import StallFormats
internal import StallSymbols

struct ForeignOptions: ParsableArguments {
    /// The meaning of profiles and crashes.
    enum Kind: String, ExpressibleByArgument, CaseIterable { case stall }

    @Option(
        help: ArgumentHelp(
            "App of other programs' reports, in place of the one that they name.",
            valueName: "name"))
    var app: String?

    @Option(
        help: ArgumentHelp(
            "Version of the app of other programs' reports.", valueName: "version"))
    var appVersion: String?

    @Option(
        help: ArgumentHelp(
            "Duration of stalls whose reports have none: 400ms, 2s.", valueName: "duration"))
    var assumeDuration: String?

    @Option(
        help: ArgumentHelp(
            "Time between two samples of profiles that only count them, such as folded stacks: 1ms, 10.1ms.",
            valueName: "duration"))
    var sampleInterval: String?

    @Option(
        help: ArgumentHelp(
            "The event whose samples to import from perf script. Default: the first.",
            valueName: "event"))
    var event: String?

    @Option(
        help: ArgumentHelp(
            "The thread that was stuck: its number or name, or main. Default: the one that the report says, or the main thread.",
            valueName: "thread"))
    var thread: String?

    @Option(help: "Import profiles and crashes as stalls, too.")
    var `as`: Kind?

    func validate() throws {
        do { _ = try assumeDuration.map(readDuration) } catch {
            throw ValidationError("--assume-duration: \(error)")
        }
        do {
            if let interval = try sampleInterval.map(readDuration), interval <= .zero {
                throw ValidationError("it must be more than 0.")
            }
        } catch {
            throw ValidationError("--sample-interval: \(error)")
        }
    }

    func options() throws -> ReadingOptions {
        var options = ReadingOptions()
        options.app = app
        options.version = appVersion
        options.duration = try assumeDuration.map(readDuration)
        options.sampleInterval = try sampleInterval.map(readDuration)
        options.event = event
        options.thread = thread
        options.takesAllAsStalls = `as` == .stall
        options.demangle = readableName
        return options
    }
}
