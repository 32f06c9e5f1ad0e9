import Foundation
import TestSupport
import Testing

/// Goal: a stall of a task's job is found whichever thread runs it, also one that took over the entry of an ended one,
/// and what no look of the watchdog saw is counted.
/// Method: `make truth-tasks` for a minute. What a loaded machine makes the watchdog miss is allowed here, if it is
/// counted.
@Suite struct TaskTruthTests {
    func play(_ seconds: Int, environment: [String: String] = [:]) throws -> (
        status: Int32, planted: Int, missed: Int, uncounted: Int, isFalse: Int, output: String
    ) {
        let run = try BuiltProgram(
            "task-truth", ["--seconds", "\(seconds)"], environment: environment
        ).finish()
        let result = try #require(
            run.output.firstMatch(
                of: /truth tasks planted=(\d+) missed=(\d+) uncounted=(\d+) false=(\d+)\n$/),
            "\(run.output)")
        let numbers = [result.1, result.2, result.3, result.4].map { Int($0)! }
        return (run.status, numbers[0], numbers[1], numbers[2], numbers[3], run.output)
    }

    @Test func `stalls on threads that come and go are found, and nothing else is one`() throws {
        let result = try play(45)
        #expect(result.planted >= 150 && result.missed * 20 <= result.planted, "\(result.output)")
        #expect(result.uncounted == 0 && result.isFalse == 0, "\(result.output)")
    }

    @Test func `a tool that is sabotaged says that stalls were missed`() throws {
        let result = try play(8, environment: ["SABOTAGE": "1"])
        #expect(result.missed > 0 && result.uncounted > 0 && result.status == 1, "\(result.output)")
    }
}
