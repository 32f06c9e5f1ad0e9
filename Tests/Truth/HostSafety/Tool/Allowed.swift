// Plays the phases of an agent's life under a filter that ends the process at any call but some, for scripts/system-calls.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

/// Starts an agent, is idle, stalls asleep and computing, stops it, starts another one and exits with it.
///
/// - Parameter calls: The numbers of the system calls that end nothing.
func playAllowed(_ directory: String, _ calls: [Int32]) throws {
    let stage = Stage(directory)
    EventRunLoop.main.run(until: .now + .milliseconds(10))
    var second = stage.configuration()
    second.store += "2"
    say("filter")
    guard host_allow_only(calls, Int32(calls.count)) else {
        print("no seccomp")
        exit(2)
    }
    say("start")
    let monitor = try StallMonitor.start(stage.configuration { $0.threads = .all })
    monitor.watch(EventRunLoop.main, as: "main")
    say("idle")
    stage.rest(.milliseconds(500))
    say("stall")
    stage.stall(monitor)
    stage.stall(monitor) { host_spin(300_000_000) }
    say("stop")
    monitor.stop(within: .seconds(5))
    let last = try StallMonitor.start(second)
    last.watch(EventRunLoop.main, as: "main")
    stage.settle()
    say("exit")
    exit(0)
}

/// A line without a buffer: the process may end at the next call.
private func say(_ phase: String) { _ = (phase + "\n").withCString { write(1, $0, strlen($0)) } }
