// More of everything than an app has: monitors, watches, threads.

import CHostSafety
import Foundation
import Logging
import StallAgent
import StallRunLoop
import Synchronization

extension Play {
    static let crowds: [Play] = [
        // A loop has room for eight watchdogs. A monitor that is refused logs and counts that.
        Play(name: "twelve-monitors") { stage in
            let logs = (0..<12).map { _ in KeptLog() }
            var monitors: [StallMonitor] = []
            let reported = (0..<12).map { _ in Flag() }
            for number in 0..<12 {
                let log = logs[number]
                monitors.append(
                    try StallMonitor.start(
                        stage.configuration {
                            $0.store = stage.directory + "/monitor\(number).sqlite"
                            $0.logger = Logger(label: "crowd", factory: { _ in log })
                        }))
                monitors[number].watch(EventRunLoop.main, as: "main")
                let isReported = reported[number]
                monitors[number].onStall { _ in isReported.set() }
            }
            stage.settle()
            stage.stall(monitors[0])
            for monitor in monitors { stage.stop(monitor, within: .seconds(10)) }
            for number in 0..<12 {
                let said = logs[number].has("cannot be watched")
                if !reported[number].isSet, !said { print("blind monitor \(number) says nothing") }
                if reported[number].isSet, said { print("crashed monitor \(number) says both") }
            }
            // The plan is of the first monitor's store.
            try FileManager.default.copyItem(
                atPath: stage.directory + "/monitor0.sqlite", toPath: stage.store)
        },
        // A thread for each request, and each marks its work.
        Play(name: "thread-per-request") { stage in
            let log = KeptLog()
            let monitor = try stage.start {
                $0.logger = Logger(label: "crowd", factory: { _ in log })
            }
            let (isOver, reports) = (Flag(), Count())
            monitor.onStall { report in
                if report.activity?.hasPrefix("planned") == true {
                    reports.value.add(1, ordering: .relaxed)
                }
            }
            stage.stall(monitor)
            let before = residentBytes()
            for _ in 0..<2 {
                Thread.detachNewThread {
                    while !isOver.isSet {
                        let marks = monitor.watchCurrentThread(as: "request")
                        marks.begin()
                        marks.end()
                    }
                }
            }
            for _ in 0..<12 { stage.stall(monitor, for: .milliseconds(300)) }
            let grown = residentBytes() - before
            isOver.set()
            stage.stop(monitor)
            let count = reports.value.load(ordering: .relaxed)
            print("reports \(count) of \(stage.planned), \(grown >> 20) MiB more")
            if count * 4 < stage.planned * 3 { print("blind for the other loops") }
            if log.has("has not come back") { print("blind for seconds") }
            if grown > 24 << 20 { print("crashed by \(grown >> 20) MiB more") }
        },
    ]

    private static func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4096
    }
}

private final class Count: Sendable {
    let value = Atomic<Int>(0)
}

/// Keeps the lines of a log.
private final class KeptLog: LogHandler, @unchecked Sendable {
    // Unchecked because of the lock.
    private let lock = NSLock()
    private var lines: [String] = []
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
    func log(event: LogEvent) { lock.withLock { lines.append("\(event.message)") } }
    func has(_ text: String) -> Bool { lock.withLock { lines.contains { $0.contains(text) } } }
}
