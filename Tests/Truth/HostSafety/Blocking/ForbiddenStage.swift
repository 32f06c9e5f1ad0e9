// Plays in which blocking is forbidden: every play of host-safety in this program, and those of Plays+Calls.swift.

import CHostSafety
import Foundation
import StallAgent
import StallBlocking
import StallRunLoop
import Synchronization

extension Stage {
    func forbidBlocking(_ monitor: StallMonitor) { monitor.forbidBlocking() }

    /// A monitor that reports every call.
    func startForbidding() throws -> StallMonitor {
        let monitor = try start { $0.limits = .none }
        // So that a driver which sees nothing is seen.
        if getenv("SABOTAGE") != nil { monitor.forbidBlocking().end() }
        return monitor
    }

    /// A call in a callout of the main loop, which must be reported.
    func call(
        _ name: String = "usleep", in function: String = "host_call_deep",
        _ body: @escaping () -> Void = { host_call_deep(3) }
    ) {
        nonisolated(unsafe) let body = body
        EventRunLoop.main.perform { body() }
        rest(.milliseconds(2))
        planCall(name, in: function)
    }

    /// Threads that make such calls until the flag is set.
    func keepCalling(_ monitor: StallMonitor, threads: Int, until isOver: Flag) {
        for number in 0..<threads {
            Thread.detachNewThread {
                let marks = monitor.watchCurrentThread(as: "caller \(number)")
                while !isOver.isSet {
                    marks.begin()
                    host_call_deep(20)
                    marks.end()
                }
            }
        }
    }
}

/// Watches threads that C makes: each is in a callout from then on, to its end.
enum Watched {
    nonisolated(unsafe) static var monitor: StallMonitor?
    // One whose marks are released is not watched.
    private static let marks = Mutex<[WatchedThread]>([])

    static func enter() {
        guard let thread = monitor?.watchCurrentThread(as: "victim") else { return }
        marks.withLock { $0.append(thread) }
        thread.begin()
    }
}
