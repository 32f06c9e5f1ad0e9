import Foundation
import TestSupport
import Testing

/// Goal: the whole path, from a loop that stalls to a report in the store, finds what was planted, and the tool that
/// measures it can fail.
/// Method: a few parts of `make truth-stalls` for some seconds. Losses on a loaded machine are allowed here: one in
/// fifty.
@Suite struct StallTruthTests {
    func play(_ arguments: [String], environment: [String: String] = [:]) throws -> (
        missed: Int, of: Int, isFalse: Int, afterwards: Int, output: String
    ) {
        let run = try BuiltProgram("stall-truth", arguments, environment: environment).finish()
        let result = try #require(
            run.output.firstMatch(
                of:
                    /truth stalls missed=(\d+) of=(\d+) false=(\d+) of=\d+ median_error_ms=[\d.]+ p99_error_ms=[\d.]+ afterwards=(\d+)\n$/
            ), "\(run.output)")
        let numbers = [result.1, result.2, result.3, result.4].map { Int($0)! }
        return (numbers[0], numbers[1], numbers[2], numbers[3], run.output)
    }

    @Test func `planted stalls are found, and nothing else is one`() throws {
        let result = try play(
            ["--seconds", "3", "unloaded", "sigstop-stalls", "pool", "ends"])
        #expect(result.of >= 50 && result.missed * 50 <= result.of, "\(result.output)")
        #expect(result.isFalse == 0, "\(result.output)")
    }

    @Test func `a tool that is sabotaged says that stalls were missed`() throws {
        let result = try play(["--seconds", "2", "unloaded"], environment: ["SABOTAGE": "1"])
        #expect(result.missed > 0 && result.output.contains("sabotage: "))
    }
}
