// The scheduling class, affinity and nice value of whoever starts the agent. A loop that never lets its CPU go must be
// reported all the same.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let schedules: [Play] = [
        schedule("fifo", 10), schedule("rr", 1), schedule("batch", 0), schedule("idle", 0),
        schedule("nice", 19),
        Play(name: "schedule-fifo-time-limit") { stage in
            // The kernel ends a process whose real-time threads compute for longer without a wait.
            host_limit(15, 300_000)
            guard host_schedule("fifo", 10) else { throw Skipped(reason: "no real-time priority") }
            let monitor = try stage.start()
            guard host_schedule("other", 0) else { throw Skipped(reason: "no return") }
            for _ in 0..<3 { stage.stall(monitor) { host_spin(250_000_000) } }
            stage.stop(monitor)
        },
    ]

    private static func schedule(_ name: String, _ number: Int32) -> Play {
        Play(name: "schedule-\(name)") { stage in
            guard host_schedule(name, number) else { throw Skipped(reason: "\(name) not allowed") }
            _ = host_pin()
            let monitor = try stage.start()
            for _ in 0..<2 { stage.stall(monitor) { host_spin(700_000_000) } }
            stage.stall(monitor)
            stage.stop(monitor)
        }
    }
}
