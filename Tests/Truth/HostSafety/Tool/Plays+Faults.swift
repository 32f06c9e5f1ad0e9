// Faults from which the app recovers, in each way that a handler can be left. A stall afterwards must be reported.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let faults: [Play] = [
        faults("faults", isAlternate: false, isNested: false),
        faults("faults-alternate-stack", isAlternate: true, isNested: false),
        faults("faults-nested", isAlternate: false, isNested: true),
        Play(name: "faults-elsewhere") { stage in
            // The thread that recovered computes, so it cannot be located; loops that go on show that nothing ends.
            host_handle_faults(true, false)
            let monitor = try stage.start()
            for way in [HOST_SIGLONGJMP, HOST_EXCEPTION] {
                Thread.detachNewThread {
                    host_survive(Int32(way))
                    host_spin(3_000_000_000)
                }
                stage.rest(.milliseconds(700))
                stage.stall(monitor)
            }
            stage.stop(monitor)
        },
    ]

    private static func faults(_ name: String, isAlternate: Bool, isNested: Bool) -> Play {
        Play(name: name) { stage in
            host_handle_faults(isAlternate, isNested)
            let monitor = try stage.start()
            // Each way in turn, then any sequence of them.
            let ways = Array(0..<Int32(HOST_WAYS))
            let random = (0..<20).map { _ in ways.randomElement()! }
            print("ways \(random)")
            for (index, way) in (ways + random).enumerated() {
                EventRunLoop.main.perform { host_survive(way) }
                index < ways.count ? stage.settle() : stage.rest(.milliseconds(10))
            }
            stage.rest(.milliseconds(2100))
            stage.stall(monitor)
            // The call that recovered goes on and hangs.
            stage.stall(monitor) {
                host_survive(Int32(HOST_SIGLONGJMP))
                host_rest(2_600_000_000)
            }
            stage.stop(monitor)
        }
    }
}
