import Foundation
import StallModel
import StallArchive
import StallQuery
import TestSupport
import Testing

/// Goal: what an app's agent leaves in its store is there in time, true, and survives the app.
/// Method: a program with an agent runs in a process of its own; its store is read from outside. The durations that the
/// fixture plans are only bounded from below: a loaded machine may stretch them.
@Suite(.serialized) struct AgentProcessTests {
    func reports(_ store: String, _ state: StallState? = nil) -> [StallReport] {
        let all = (try? ReportStore.open(path: store).reports(ReportFilter(), limit: nil)) ?? []
        return all.filter { state == nil || $0.state == state }
    }

    func functions(_ report: StallReport) -> [String] {
        report.samples.flatMap(\.frames).compactMap(\.function)
    }

    @Test func `every stall is reported once, with its function, label and duration`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let program = try BuiltProgram("AgentFixture", ["stalls", store, "3"])
            let (status, output, errors) = program.finish()
            #expect(status == 0 && errors == "")
            let reports = reports(store)
            #expect(reports.count == 3)
            #expect(
                output.matches(of: /stall [0-9a-f]{32}/).count == 3,
                "onStall hears of each one once")
            for report in reports {
                #expect(report.state == .ended && report.verdict == .stalled)
                #expect(report.duration >= .milliseconds(399))
                #expect(
                    report.loop == "main" && report.phase == .timer && report.activity == "planned")
                #expect(report.run.app == "fixture" && report.run.version == "7.1")
                #expect(report.samples.count >= 2)
                #expect(functions(report).contains("plannedStall()"))
            }
            #expect(!FileManager.default.fileExists(atPath: store + "-wal"), "one portable file")
            let mode = try FileManager.default.attributesOfItem(atPath: store)[.posixPermissions]
            #expect(mode as? Int == 0o600)
        }
    }

    @Test func `a report holds every thread of the process when the app asks for all`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let program = try BuiltProgram("AgentFixture", ["threads", store])
            #expect(program.finish().status == 0)
            let report = try #require(reports(store).first)
            #expect(report.skippedThreadCount == 0 && report.agentTime > .zero)
            #expect(report.threads.allSatisfy { $0.role == .other })
            let stalled = try #require(report.samples.first?.thread)
            #expect(!report.threads.contains { $0.thread == stalled })
            func threads(in function: String) -> [ThreadSnapshot] {
                report.threads.filter { $0.frames.contains { $0.function == function } }
            }
            #expect(
                threads(in: "parkedWork()").map(\.method) == [
                    .signalFree, .signalFree, .signalFree,
                ])
            let busy = threads(in: "busyWork()")
            // On a machine with more to do than it can, the busy thread may not have had its turn.
            #expect(
                busy.map(\.method) == [.signal] || report.threads.contains { $0.failure != nil })
            #expect(report.threads.contains { $0.name == "stall-recorder" })
        }
    }

    @Test func `an ongoing stall is in the store, survives kill -9, and becomes a hang`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let program = try BuiltProgram("AgentFixture", ["hang", store])
            #expect(program.nextLine() == "hanging")
            let live = eventually {
                reports(store, .open).first { functions($0).contains("plannedHang()") }
            }
            let open = try #require(live, "the report is there while the stall lasts")
            let grown = eventually { reports(store).first { $0.duration >= .milliseconds(1200) } }
            #expect(grown?.id == open.id, "its duration is refreshed")
            program.killNow()

            let left = try #require(reports(store).first)
            #expect(left.id == open.id && left.duration >= .milliseconds(1200))
            let next = try BuiltProgram("AgentFixture", ["idle", store, "1"])
            #expect(next.finish().status == 0)
            let closed = reports(store)
            #expect(closed.map(\.id) == [open.id] && closed[0].state == .hang)
            #expect(closed[0].duration >= left.duration)
        }
    }

    @Test func `an app that exits without a word to the agent leaves a readable store`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let program = try BuiltProgram("AgentFixture", ["leave", store])
            #expect(program.finish().status == 0)
            #expect(reports(store).count == 1)
        }
    }

    @Test func `a store that cannot be written costs one line, not the app`() throws {
        let program = try BuiltProgram("AgentFixture", ["stalls", "/proc/none/stalls.sqlite", "2"])
        let (status, output, errors) = program.finish()
        #expect(status == 0)
        #expect(
            output.hasSuffix("done\n") && !output.contains("stall "),
            "it hears of reports that are in the store only")
        let lines = errors.split(separator: "\n").filter { $0.contains("stalls are counted") }
        #expect(lines.count == 1 && lines[0].contains("/proc/none/stalls.sqlite"))
    }

    @Test func `an operator can switch the agent off, move its store and change its threshold`()
        throws
    {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "a.sqlite").path
            let off = try BuiltProgram(
                "AgentFixture", ["stalls", store, "1"], environment: ["STALLWATCH_DISABLED": "1"])
            #expect(off.finish().status == 0)
            #expect(!FileManager.default.fileExists(atPath: store))

            let moved = directory.appending(path: "b.sqlite").path
            let program = try BuiltProgram(
                "AgentFixture", ["stalls", store, "1"],
                environment: ["STALLWATCH_STORE": moved, "STALLWATCH_THRESHOLD_MS": "soon"])
            let (status, _, errors) = program.finish()
            #expect(status == 0 && errors.contains("STALLWATCH_THRESHOLD_MS is soon"))
            #expect(reports(moved).count == 1 && !FileManager.default.fileExists(atPath: store))
        }
    }

    /// Counts the voluntary context switches of the agent's threads while the app only waits.
    @Test func `an idle app's agent sleeps`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let program = try BuiltProgram("AgentFixture", ["idle", store, "5"])
            #expect(program.nextLine() == "idle")
            func switches() -> [String: Int] {
                let tasks = "/proc/\(program.pid)/task"
                let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
                return threads.reduce(into: [:]) { counts, thread in
                    let status =
                        (try? String(contentsOfFile: "\(tasks)/\(thread)/status", encoding: .utf8))
                        ?? ""
                    guard status.hasPrefix("Name:\tstall-") else { return }
                    let count =
                        status.firstMatch(of: /\nvoluntary_ctxt_switches:\s+(\d+)/)?.1 ?? "0"
                    counts[thread] = Int(count)
                }
            }
            // It settles after the start; then nothing moves for a second.
            let settled = eventually { () -> Bool? in
                let before = switches()
                usleep(1_000_000)
                return before.count >= 2 && before == switches() ? true : nil
            }
            #expect(settled == true)
            program.killNow()
        }
    }
}
