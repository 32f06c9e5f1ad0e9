import Foundation
import StallModel
import StallArchive
import StallQuery
import TestSupport
import Testing

/// Goal: however a process goes in a stall, or just after one, the next start makes the store say how long it lasted and what
/// ended it.
/// Method: `AgentFixture end HOW`, a program that stalls for 600 ms and goes in that way; then another agent opens its store.
@Suite struct EndingTests {
    @Test(arguments: [
        ("exit", StallState.hang, StallEnding.exit), ("_exit", .hang, .killed),
        ("abort", .hang, .crash), ("kill", .hang, .killed), ("fault", .hang, .crash),
        ("ended-exit", .ended, .recovered), ("ended-kill", .ended, .recovered),
        ("stop", .ended, .stop),
    ])
    func `what ended a stall, and how long it lasted, outlives the process`(
        how: String, state: StallState, ending: StallEnding
    ) throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let ended = try BuiltProgram(
                "AgentFixture", ["end", store, how], environment: ["SWIFT_BACKTRACE": "enable=no"]
            ).finish()
            let lasted = try #require(Double(ended.output.split(separator: "\n").last ?? ""))
            _ = try BuiltProgram("AgentFixture", ["end", store, "nothing"]).finish()
            let reports = try ReportStore.open(path: store).reports(ReportFilter())
            let report = try #require(reports.first)
            #expect(reports.count == 1 && report.state == state && report.ending == ending)
            let share = report.duration.milliseconds / lasted
            #expect(share >= 0.8 && share < 1.2, "\(report.duration) of \(lasted) ms")
            let pages = try FileManager.default.contentsOfDirectory(atPath: "/dev/shm")
            let run = report.run.id.description
            #expect(!pages.contains("stallwatch-\(run)"))
        }
    }

    /// It takes seconds, and stops all threads for so long.
    @Test(arguments: ["abort", "abort-elsewhere", "fault"])
    func
        `a crash that Swift's runtime reports is a crash, and the report takes no part in the stall`(
            how: String
        ) throws
    {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let crashed = try BuiltProgram(
                "AgentFixture", ["end", store, how],
                environment: ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no,cache=no"]
            ).finish()
            #expect(crashed.errors.contains("Program crashed"), "\(crashed.errors)")
            // Every thread of the agent, too, lets the reporter suspend it.
            #expect(!crashed.errors.contains("failed to suspend"), "\(crashed.errors)")
            let text = crashed.output.split(separator: "\n").first { Double($0) != nil }
            let lasted = try #require(Double(text ?? ""))
            _ = try BuiltProgram("AgentFixture", ["end", store, "nothing"]).finish()
            let report = try #require(
                try ReportStore.open(path: store).reports(ReportFilter()).first)
            #expect(report.state == .hang && report.ending == .crash)
            let share = report.duration.milliseconds / lasted
            #expect(share >= 0.8 && share < 1.2, "\(report.duration) of \(lasted) ms")
        }
    }

    @Test func `the agent's threads let a crash reporter suspend them only while it works`() throws
    {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let run = try BuiltProgram(
                "AgentFixture", ["end", store, "quit"],
                environment: ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no,cache=no"]
            ).finish()
            #expect(run.errors.contains("\"stall-watchdog\""), "\(run.errors)")
            #expect(!run.errors.contains("failed to suspend"), "\(run.errors)")
            #expect(run.output.contains("threads that let SIGPROF through: 0\n"), "\(run.output)")
            #expect(!run.output.contains("threads that block it: 0\n"), "\(run.output)")
            #expect(run.status == 0)
        }
    }

    /// What is suppressed takes no room from what is reported: the page that outlives the process has room for 32 stalls.
    @Test func `a stall that was killed is known after forty that a rate limit held back`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let ended = try BuiltProgram("AgentFixture", ["end", store, "limited-kill"]).finish()
            let lasted = try #require(Double(ended.output.split(separator: "\n").last ?? ""))
            _ = try BuiltProgram("AgentFixture", ["end", store, "nothing"]).finish()
            let reports = try ReportStore.open(path: store).reports(ReportFilter())
            let hangs = reports.filter { $0.state == .hang }
            let report = try #require(hangs.first)
            #expect(hangs.count == 1 && report.ending == .killed)
            let share = report.duration.milliseconds / lasted
            #expect(share >= 0.8 && share < 1.2, "\(report.duration) of \(lasted) ms")
            #expect(reports.count < 40)
        }
    }

    /// Two agents watch one loop: a library's and the app's. Each has word of its own.
    @Test(arguments: [
        ("two-kill", StallState.hang, StallEnding.killed, true),
        ("two-ended-kill", .ended, .recovered, true), ("left-kill", .hang, .killed, false),
    ])
    func `each of two agents on a loop knows how a stall ended`(
        how: String, state: StallState, ending: StallEnding, areBothThere: Bool
    ) throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let ended = try BuiltProgram("AgentFixture", ["end", store, how]).finish()
            let lasted = try #require(Double(ended.output.split(separator: "\n").last ?? ""))
            for path in areBothThere ? [store, store + ".second"] : [store] {
                _ = try BuiltProgram("AgentFixture", ["end", path, "nothing"]).finish()
                let reports = try ReportStore.open(path: path).reports(ReportFilter())
                let report = try #require(reports.first)
                #expect(reports.count == 1 && report.state == state && report.ending == ending)
                let share = report.duration.milliseconds / lasted
                #expect(share >= 0.8 && share < 1.2, "\(report.duration) of \(lasted) ms")
            }
        }
    }
}
