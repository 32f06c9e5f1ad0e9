// A pool of threads that the agent knows by their names, as NIO's: it is exhausted, or its threads get no CPU.

import Foundation
import StallAgent

let poolScenarios: [String: @Sendable (StallMonitor) async -> Void] = [
    "threads-exhausted": threadsExhausted, "threads-starved": threadsStarved,
]

/// Threads that take items from one list.
final class PlainPool: @unchecked Sendable {
    // Unchecked because the condition's lock protects the list.
    private let condition = NSCondition()
    private var items: [@Sendable () -> Void] = []

    /// - Parameter isIdleClass: They get only the CPU that no other thread wants.
    init(threads: Int, isIdleClass: Bool) {
        for number in 0..<threads {
            Thread { [self] in
                // Foundation may set a name meanwhile, on the thread that starts this one.
                pause(0.03)
                Thread.current.name = "FIX-TP-#\(number)"
                var parameter = sched_param()
                let idleClass: Int32 = 5  // SCHED_IDLE
                if isIdleClass { sched_setscheduler(0, idleClass, &parameter) }
                while true { take()() }
            }.start()
        }
        pause(0.1)
    }

    private func take() -> @Sendable () -> Void {
        condition.lock()
        defer { condition.unlock() }
        while items.isEmpty { condition.wait() }
        return items.removeFirst()
    }

    func submit(_ item: @escaping @Sendable () -> Void) {
        condition.lock()
        items.append(item)
        condition.unlock()
        condition.signal()
    }
}

/// Every thread blocks, and one more item waits.
@Sendable func threadsExhausted(_ monitor: StallMonitor) async {
    let pool = PlainPool(threads: 2, isIdleClass: false)
    monitor.watchThreads(named: "FIX-TP-#", as: "files", threshold: nil) { pool.submit($0) }
    pause(0.3)
    for _ in 0..<2 { pool.submit { plannedStall() } }
    pause(1)
}

/// Nothing but probes is in the list, and the threads that would take them wait for a CPU.
@Sendable func threadsStarved(_ monitor: StallMonitor) async {
    let pool = PlainPool(threads: 2, isIdleClass: true)
    monitor.watchThreads(named: "FIX-TP-#", as: "files", threshold: .milliseconds(20)) {
        pool.submit($0)
    }
    pause(0.2)
    let end = Date(timeIntervalSinceNow: 3)
    let hogs = DispatchGroup()
    for _ in 0..<ProcessInfo.processInfo.activeProcessorCount * 2 {
        hogs.enter()
        Thread {
            while Date() < end {}
            hogs.leave()
        }.start()
    }
    hogs.wait()
}
