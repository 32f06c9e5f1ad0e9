// The thread of all queue probes of a monitor, and of the queries to Foundation's loops. It is separate from the
// watchdog: enqueuing may have to start a thread, a CFRunLoop has a lock, and waiting for the app must not delay the
// watchdog.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import StallRunLoop

/// Polls every queue when it is due. The thread is started with the first queue.
final class QueueProbeThread: Sendable {
    private struct State {
        var probes: [QueueProbe] = []
        var corrections: [LoopCorrection] = []
        var thread: AgentThread?
        var isStopped = false
    }
    private struct Wakeup: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_wakeup> }

    private let state = AgentLocked(State())
    /// Never freed; nil without memory: then nothing is probed.
    private let wakeup = stall_wakeup_create().map { Wakeup(pointer: $0) }

    /// Polls this queue from now on.
    func add(_ probe: QueueProbe) {
        guard let wakeup else { return }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.probes.append(probe)
            start(&state, wakeup)
        }
        stall_wakeup_signal(wakeup.pointer)
    }

    /// Answers these queries from now on.
    func add(_ correction: LoopCorrection) {
        guard let wakeup else { return }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.corrections.append(correction)
            start(&state, wakeup)
        }
        correction.connect(to: wakeup.pointer)
    }

    func remove(_ correction: LoopCorrection) {
        state.withLock { state in state.corrections.removeAll { $0 === correction } }
    }

    private func start(_ state: inout State, _ wakeup: Wakeup) {
        guard state.thread == nil else { return }
        state.thread = AgentThread(name: "stall-heartbeat") { [self] in
            stall_thread_wake_on_time()
            run(wakeup.pointer)
        }
    }

    /// Stops polling this queue. An enqueued probe still runs when its turn comes.
    func remove(_ probe: QueueProbe) {
        state.withLock { state in state.probes.removeAll { $0 === probe } }
    }

    /// Ends the thread.
    func stop() {
        let thread = state.withLock { state in
            state.isStopped = true
            state.probes = []
            state.corrections = []
            return state.thread.take()
        }
        guard let thread, let wakeup else { return }
        stall_wakeup_signal(wakeup.pointer)
        // A thread that is stuck in Dispatch or behind a CFRunLoop's lock must not keep the store from being closed.
        if !thread.join(within: .seconds(1)) { thread.detach() }
    }

    private func run(_ wakeup: UnsafeMutablePointer<stall_wakeup>) {
        while true {
            // Announced before the list is read, so that no wake-up is lost in between.
            stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT))
            let (probes, corrections, isStopped) = state.withLock {
                ($0.probes, $0.corrections, $0.isStopped)
            }
            if isStopped { return }
            for correction in corrections { correction.answer() }
            let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
            for probe in probes where probe.nextTick <= now && !probe.tick() { remove(probe) }
            let due = probes.lazy.map(\.nextTick).min()
            stall_wakeup_wait(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT), due?.nanoseconds ?? .max)
        }
    }
}
