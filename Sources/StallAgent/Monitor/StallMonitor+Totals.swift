// The watched loops' own counters, for modules that export them.

internal import CLinux
internal import StallDetection
package import StallModel
internal import StallRunLoop
internal import Synchronization

extension StallMonitor {
    /// The total busy time of each watched loop while it was watched, and the time of the reading.
    package var busyTimes: (at: MonotonicInstant, loops: [(name: String, busy: Duration)]) {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        return (
            now,
            watches.all.map {
                ($0.name, $0.loop.beacon.counters(at: now, runDelay: nil).busy)
            }
        )
    }

    /// Calls `body` periodically on one of the agent's threads until the monitor stops.
    package func repeatedly(every interval: Duration, _ body: @escaping @Sendable () -> Void) {
        guard let agent, !watches.isClosed, let pulse = IntervalThread(interval, body) else {
            return
        }
        agent.intervals.withLock { $0.append(pulse) }
    }
}

/// A thread that runs a closure periodically.
final class IntervalThread: @unchecked Sendable {
    // Unchecked because of the wake-up word, which is a futex and is never freed.
    private let wakeup: UnsafeMutablePointer<stall_wakeup>
    private let isStopped = Atomic<Bool>(false)
    private let thread = AgentLocked<AgentThread?>(nil)

    /// Nil without memory.
    init?(_ interval: Duration, _ body: @escaping @Sendable () -> Void) {
        guard let wakeup = stall_wakeup_create() else { return nil }
        self.wakeup = wakeup
        let thread = AgentThread(name: "stall-interval") { [self] in
            while true {
                stall_wakeup_prepare(self.wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT))
                if isStopped.load(ordering: .acquiring) { return }
                body()
                let due = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + interval
                stall_wakeup_wait(self.wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT), due.nanoseconds)
            }
        }
        self.thread.withLock { $0 = thread }
    }

    /// Ends the thread. A thread that is stuck in the app's code is detached.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        stall_wakeup_signal(wakeup)
        guard let thread = thread.withLock({ $0.take() }) else { return }
        if !thread.join(within: .seconds(1)) { thread.detach() }
    }
}
