// The agent's use of the process's resources, for docs/in-your-process.md.

import Foundation
import StallAgent
import StallRunLoop

/// Prints threads, descriptors, resident memory and wake-ups before, with and after an agent.
func printFootprint(_ directory: String) throws {
    let stage = Stage(directory)
    EventRunLoop.main.run(until: .now + .milliseconds(10))
    show("before")
    let monitor = try StallMonitor.start(stage.configuration { $0.threshold = .milliseconds(250) })
    monitor.watch(EventRunLoop.main, as: "main")
    stage.rest(.milliseconds(500))
    show("watching")
    let turns = contextSwitches()
    stage.rest(.seconds(5))
    print("wake-ups of the agent in 5 idle seconds: \(contextSwitches() - turns)")
    stage.stall(monitor, for: .milliseconds(600))
    stage.rest(.seconds(1))
    show("after a stall")
    for _ in 0..<20 { stage.stall(monitor, for: .milliseconds(300)) }
    show("after 21 stalls")
    let began = ContinuousClock.now
    monitor.stop(within: .seconds(5))
    print("stop: \(began.duration(to: .now))")
    show("stopped")
}

private func show(_ moment: String) {
    func entries(_ path: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    }
    let threads = entries("/proc/self/task").compactMap {
        try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let resident =
        (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?
        .split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    print(
        "\(moment): descriptors \(entries("/proc/self/fd").count - 1), resident \(resident * 4) KiB, "
            + "threads \(threads.sorted())")
}

/// Voluntary ones of the agent's own threads.
private func contextSwitches() -> Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.reduce(0) { sum, task in
        let text =
            (try? String(contentsOfFile: "/proc/self/task/\(task)/status", encoding: .utf8)) ?? ""
        guard text.hasPrefix("Name:\tstall-") else { return sum }
        let line = text.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
    }
}
