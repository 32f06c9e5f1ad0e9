// What the agent's signals meet: small stacks, short waits, other handlers, other copies of the agent.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let signals: [Play] = [
        // An app without a signal handler has never seen EINTR. The CPUs are shared, so that threads are preempted on
        // their way into a wait. The second number is that of the waits.
        Play(name: "waits after short bursts of work") { stage in
            let monitor = try stage.start { $0.threshold = .milliseconds(20) }
            for _ in 0..<3 { Thread.detachNewThread { host_spin(4_000_000_000) } }
            // A stall has few samples: many short ones have more than a long one.
            let total = Waits()
            for _ in 0..<60 {
                EventRunLoop.main.perform {
                    let waits = host_work_in_bursts(1_000_000, 1_100_000, 60_000_000)
                    total.count += waits.count
                    total.ended += waits.ended
                }
                stage.rest(.milliseconds(5))
            }
            print("eintr \(total.ended) of \(total.count)")
            stage.stop(monitor)
        }
    ]
}

/// What all stalls of a play counted, on the main thread.
private final class Waits: @unchecked Sendable {
    var count: UInt64 = 0
    var ended: UInt64 = 0
}
