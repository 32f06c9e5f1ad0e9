// Ways in which a process can go, in the middle of a stall or just after one.

import Foundation
import StallAgent

/// Stalls for 600 ms, says how long that was, and ends in the way that `how` names; "nothing" only starts and stops the agent.
/// Before a way, "two-" has a second agent watch as well, into `store` with `.second` behind it, and "left-" one that has stopped.
func stall(store: String, endingBy name: String) throws {
    var configuration = StallMonitor.Configuration(app: "fixture", version: "1", store: store)
    if name.hasPrefix("limited-") { configuration.limits = .init(perPlace: 1, perHour: 600) }
    let monitor = try StallMonitor.start(configuration)
    guard name != "nothing" else { return monitor.stop() }
    let loop = EventRunLoop.main
    var how = name
    if name.hasPrefix("limited-") {
        monitor.watch(loop, as: "main", threshold: .milliseconds(20))
        for _ in 1...40 {
            loop.perform { usleep(40_000) }
            loop.run(until: .now + .milliseconds(60))
        }
        how = String(name.drop { $0 != "-" }.dropFirst())
    }
    if name.hasPrefix("two-") || name.hasPrefix("left-") {
        let second = try StallMonitor.start(
            .init(app: "fixture", version: "1", store: store + ".second"))
        second.watch(loop, as: "main", threshold: .milliseconds(200))
        if name.hasPrefix("left-") { second.stop() }
        how = String(name.drop { $0 != "-" }.dropFirst())
    }
    monitor.watch(loop, as: "main", threshold: .milliseconds(200))
    loop.add(
        LoopTimer(after: .milliseconds(50)) { [how] _ in
            let began = ContinuousClock.now
            if how == "abort-elsewhere" {
                // The crash reporter stops this thread for as long as it takes, and lets it go on for a moment.
                Thread {
                    usleep(600_000)
                    say("\((ContinuousClock.now - began) / .milliseconds(1))")
                    abort()
                }.start()
                usleep(900_000)
                return
            }
            usleep(600_000)
            say("\((ContinuousClock.now - began) / .milliseconds(1))")
            guard !how.hasPrefix("ended-") else {
                let after = LoopTimer(after: .milliseconds(1)) { _ in
                    end(by: String(how.dropFirst(6)))
                }
                loop.add(after, toMode: .common)
                return
            }
            if how == "stop" { monitor.stop() }
            end(by: how)
        }, toMode: .common)
    loop.run()
}

private func end(by how: String) {
    switch how {
    case "_exit": _exit(0)
    case "abort": abort()
    case "kill": kill(getpid(), SIGKILL)
    case "fault": UnsafeMutablePointer<Int>(bitPattern: 8)!.pointee = 1
    case "quit":
        kill(getpid(), SIGQUIT)
        // Swift's crash reporter has returned, and the process lives on.
        say("threads that let SIGPROF through: \(agentThreads(thatBlock: false, SIGPROF))")
        say("threads that block it: \(agentThreads(thatBlock: true, SIGPROF))")
        exit(0)
    default: exit(0)
    }
}

private func agentThreads(thatBlock isBlocked: Bool, _ signal: CInt) -> Int {
    let tasks = try! FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
    return tasks.count { task in
        guard
            let status = try? String(
                contentsOfFile: "/proc/self/task/\(task)/status", encoding: .utf8),
            status.hasPrefix("Name:\tstall-"),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigBlk:") }),
            let mask = UInt64(line.dropFirst(8), radix: 16)
        else { return false }
        return (mask >> UInt64(signal - 1) & 1 == 1) == isBlocked
    }
}
