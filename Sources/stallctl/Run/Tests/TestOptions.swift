// The options of `run` for tests.

internal import ArgumentParser
internal import StallModel

struct TestOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Report when no test has started or ended for so long. Default: 60s.",
            valueName: "duration"),
        transform: readDuration)
    var testTimeout: Duration?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Report the tests that have not ended when the run has taken so long.",
            valueName: "duration"),
        transform: readDuration)
    var deadline: Duration?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "End all processes so long after a report, unless the tests continue.",
            valueName: "duration"),
        transform: readDuration)
    var killAfter: Duration?

    @Option(
        help: ArgumentHelp(
            "The reports' form: text, github (annotations of GitHub Actions) or json (lines). Default: text.",
            valueName: "form"))
    var format: HangFormat?

    func validate() throws {
        let given: [(String, Duration?)] = [
            ("--test-timeout", testTimeout), ("--deadline", deadline), ("--kill-after", killAfter),
        ]
        for (name, value) in given {
            guard let value, !(.zero ... .seconds(7 * 86_400)).contains(value) else { continue }
            throw ValidationError("\(name) must be at most 168h; it was \(value).")
        }
        if let testTimeout, testTimeout < .seconds(1) {
            throw ValidationError("--test-timeout must be 1s or more; it was \(testTimeout).")
        }
    }

    /// The first option that was given.
    var given: String? {
        if testTimeout != nil { return "--test-timeout" }
        if deadline != nil { return "--deadline" }
        if killAfter != nil { return "--kill-after" }
        return format == nil ? nil : "--format"
    }

    var limits: HangJudge.Limits {
        HangJudge.Limits(test: testTimeout ?? .seconds(60), deadline: deadline, kill: killAfter)
    }
}

extension HangFormat: ExpressibleByArgument {}
