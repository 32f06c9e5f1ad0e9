// Runs the detectors of all watched loops on one thread. It sleeps until the earliest poll is due, and without a
// deadline when every loop waits; the first loop to become busy wakes it (CLinux/stall_beacon.h).
//
// It takes no lock that an app's thread can hold, and it waits for nothing but its own futex. A second thread only
// sleeps (SuspensionProbe.swift).

package import CLinux
package import StallModel
internal import Synchronization

/// A thread that watches any number of loops.
package final class Watchdog: Sendable {
    private let inbox = WatchdogInbox()
    private let wakeup: Wakeup
    private let suspensionProbe: SuspensionProbe
    private let thread: AgentThread
    private let pulse = WatchdogPulse()
    private let refused = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    /// The index of the monitor's slot in the process record; -1 without one. `join` does not release it, because the
    /// store's writer still uses it.
    package let processRecord = stall_process_record_reserve()
    /// Allocated in advance, because stopping must not allocate.
    private let stopRequest = WatchdogInbox.Entry(.stop)

    /// A wake-up word is never freed: a loop may signal it at any moment.
    private struct Wakeup: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_wakeup> }

    /// Starts the threads; nil if the system refuses.
    package init?() {
        guard let pointer = stall_wakeup_create(), let suspensionProbe = SuspensionProbe() else {
            return nil
        }
        wakeup = Wakeup(pointer: pointer)
        self.suspensionProbe = suspensionProbe
        let createdAt = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let thread = AgentThread(name: "stall-watchdog", scheduling: .ahead) {
            [inbox, wakeup, pulse, processRecord] in
            stall_thread_wake_on_time()
            var watch = WatchdogThread(
                kernel: LinuxKernel(suspensionProbe), inbox: inbox, wakeup: wakeup.pointer,
                pulse: pulse, monitor: processRecord, createdAt: createdAt)
            watch.run()
        }
        guard let thread else {
            suspensionProbe.stop()
            return nil
        }
        self.thread = thread
    }

    /// Why a loop is not watched.
    package enum Refusal: Sendable {
        /// As many watchdogs as a loop can wake have it already.
        case noRoomInLoop
        /// The watchdog is behind with the watches requested before.
        case tooManyRequests
    }

    /// Watches a loop from now on. Any thread.
    ///
    /// - Returns: Why not, or nil. Refusals are counted.
    @discardableResult
    package func watch(_ loop: WatchedLoop) -> Refusal? {
        guard inbox.reserveWatch() else { return refuse(.tooManyRequests) }
        let slot = WatchSlot(loop)
        // The loop counts its long spans from now on, even if this watchdog has no CPU for a while.
        let hasJoined = loop.beacon.connect(
            to: wakeup.pointer, stallLength: loop.policies.base.threshold)
        guard hasJoined else {
            inbox.releaseWatch()
            return refuse(.noRoomInLoop)
        }
        loop.request()
        send(.watch(slot))
        // A watchdog that stops may not take the request any more: the loop would keep a watcher forever.
        if isStopping.load(ordering: .sequentiallyConsistent), loop.abandon() {
            loop.beacon.disconnect(from: wakeup.pointer)
        }
        return nil
    }

    private func refuse(_ refusal: Refusal) -> Refusal {
        refused.wrappingAdd(1, ordering: .relaxed)
        return refusal
    }

    /// The number of watches that were refused since the last call.
    package func takeRefused() -> Int { refused.exchange(0, ordering: .relaxed) }

    /// Applies other policies to a loop from its next poll on. Any thread.
    package func setPolicies(_ policies: ModePolicies, of loop: WatchedLoop) {
        send(.setPolicies(loop, policies))
    }

    /// Stops watching a loop; an open stall is ended with its duration so far. Any thread.
    package func unwatch(_ loop: WatchedLoop) {
        // An app with a thread for each request may watch thousands of them in a second.
        guard loop.cancel() else { return send(.unwatch(loop)) }
        loop.beacon.disconnect(from: wakeup.pointer)
    }

    /// Frees what the watchdog has retired. Any thread but the watchdog's.
    package func collect() { inbox.collect() }

    /// Whether there is anything to free. Read after `stall_wakeup_prepare` of the collector's word.
    package var hasSpent: Bool { inbox.hasSpent }

    /// Names the thread that is woken when there is something to free, by a word that is never freed.
    package func setCollector(_ wakeup: UnsafeMutablePointer<stall_wakeup>) {
        inbox.setCollector(wakeup)
    }

    /// Health: how long the watchdog has been busy without a pause, or is overdue.
    package func delay(at now: MonotonicInstant) -> Duration { pulse.delay(at: now) }

    /// It sleeps without a deadline until a loop wakes up.
    package var isWaiting: Bool { pulse.isWaiting }

    /// Makes the watchdog end open stalls and then itself. Neither allocates nor waits. Call it once.
    package func beginStop() {
        isStopping.store(true, ordering: .sequentiallyConsistent)
        inbox.push(stopRequest)
        stall_wakeup_signal(wakeup.pointer)
    }

    /// Waits for the end of the threads after `beginStop`. Call it once, from any thread but the watchdog's.
    package func join() {
        thread.join()
        suspensionProbe.stop()
        inbox.collect()
    }

    /// Ends open stalls and the threads. Call it once, from any thread but the watchdog's.
    package func stop() {
        beginStop()
        join()
        stall_process_record_release(processRecord, false)
    }

    private func send(_ request: WatchdogRequest) {
        inbox.push(request)
        stall_wakeup_signal(wakeup.pointer)
    }
}

// Not in an app: with another kernel than Linux, the optimizer would have to keep the watchdog's code twice.
#if DEBUG || STALL_SIMULATION
extension Watchdog {
    /// Watches loops on the calling thread, by a kernel that is made up, until it is stopped.
    ///
    /// - Parameter makeKernel: Makes the kernel, which calls `stop` to end the run.
    package static func run<Kernel: WatchdogKernel>(
        _ loops: [WatchedLoop], _ makeKernel: (_ stop: @escaping () -> Void) -> Kernel
    ) {
        guard let wakeup = stall_wakeup_create() else { return }
        let inbox = WatchdogInbox()
        for loop in loops where inbox.reserveWatch() {
            loop.beacon.connect(to: wakeup, stallLength: loop.policies.base.threshold)
            loop.request()
            inbox.push(.watch(WatchSlot(loop)))
        }
        let kernel = makeKernel { inbox.push(.stop) }
        let createdAt = kernel.now()
        var thread = WatchdogThread(
            kernel: kernel, inbox: inbox, wakeup: wakeup, pulse: WatchdogPulse(), monitor: -1,
            createdAt: createdAt)
        thread.run()
        inbox.collect()
    }
}
#endif
