// Ways in which a process can end, during a stall or just after one. Each is run by a child with its own agent; the
// next agent that opens its store must make the store reflect what happened.

import Foundation
import StallAgent
import StallModel
import StallArchive
import StallQuery

/// A way to end, and the expected record of the stall.
struct WayOut {
    var name: String
    var state: StallState
    var ending: StallEnding
    /// The stored length is the true one; else nine tenths of it are enough.
    var isExact: Bool

    static let all = [
        WayOut(name: "exit", state: .hang, ending: .exit, isExact: true),
        WayOut(name: "return", state: .ended, ending: .recovered, isExact: true),
        WayOut(name: "ended-exit", state: .ended, ending: .recovered, isExact: true),
        WayOut(name: "ended-_exit", state: .ended, ending: .recovered, isExact: false),
        WayOut(name: "ended-kill", state: .ended, ending: .recovered, isExact: false),
        WayOut(name: "_exit", state: .hang, ending: .killed, isExact: false),
        WayOut(name: "kill", state: .hang, ending: .killed, isExact: false),
        WayOut(name: "abort", state: .hang, ending: .crash, isExact: false),
        WayOut(name: "fault", state: .hang, ending: .crash, isExact: false),
        WayOut(name: "exec", state: .hang, ending: .exec, isExact: false),
        WayOut(name: "stop", state: .ended, ending: .stop, isExact: true),
    ]

    /// The child: stalls for this many milliseconds, prints the actual duration, and ends.
    static func play(_ name: String, store: String, milliseconds: UInt32) {
        let monitor = try! StallMonitor.start(.init(app: "truth", version: "1", store: store))
        guard name != "nothing" else { return monitor.stop() }
        let loop = EventRunLoop.main
        monitor.watch(loop, as: "main", threshold: .milliseconds(250))
        loop.add(
            LoopTimer(after: .milliseconds(50)) { _ in
                let began = monotonic()
                usleep(milliseconds * 1000)
                print(Double(monotonic() - began) / 1e6)
                if name == "stop" { monitor.stop() }
                if name == "return" { return loop.stop() }
                guard name.hasPrefix("ended-") else { return go(name) }
                let after = LoopTimer(after: .milliseconds(1)) { _ in go(String(name.dropFirst(6)))
                }
                loop.add(after, toMode: .common)
            }, toMode: .common)
        loop.run()
    }

    private static func go(_ name: String) {
        switch name {
        case "_exit": _exit(0)
        case "abort": abort()
        case "kill": kill(getpid(), SIGKILL)
        case "fault": UnsafeMutablePointer<Int>(bitPattern: 8)!.pointee = 1
        case "exec":
            // It continues as another program while the next agent checks.
            var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("5"), nil]
            execv("/bin/sleep", &arguments)
        default: exit(0)
        }
    }

    /// Runs it once. Nil if the store is right, else what is wrong.
    func check(milliseconds: Int, directory: URL) throws -> String? {
        let store = directory.appending(path: "\(UUID()).sqlite").path
        let child = Child(["ending", name, store, "\(milliseconds)"])
        guard let lasted = child.firstNumber else { return "\(name): it said nothing" }
        if ending != .exec { child.waitForEnd() } else { usleep(300_000) }
        let next = Child(["ending", "nothing", store, "0"])
        next.waitForEnd()
        child.end()
        let reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
        guard let report = reports.first, reports.count == 1 else {
            return "\(name) after \(lasted) ms: \(reports.count) reports"
        }
        let length = report.duration.milliseconds
        // The callout continues a little after it has printed its duration.
        let isLong = isExact ? abs(length - lasted) <= 25 : length >= lasted * 0.9
        let isRight =
            report.state == state && report.ending == ending && isLong && length <= lasted + 25
        return isRight
            ? nil
            : "\(name) after \(lasted) ms: \(report.state) \(report.ending.map { "\($0)" } ?? "-") \(length) ms"
    }
}

/// A process of this program, without a crash reporter.
private final class Child {
    private let process = Process()
    private let pipe = Pipe()

    init(_ arguments: [String]) {
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        process.environment = ProcessInfo.processInfo.environment.merging([
            "SWIFT_BACKTRACE": "enable=no"
        ]) { $1 }
        try! process.run()
    }

    /// Its first line of output.
    var firstNumber: Double? {
        let text = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        return text.split(separator: "\n").first.flatMap { Double($0) }
    }

    func waitForEnd() { process.waitUntilExit() }

    func end() {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }
}
