// The thread that all heartbeats of a monitor share, and the questions to Foundation's loops. It is not the watchdog's: entering
// a queue may have to start a thread, a CFRunLoop has a lock, and what may wait for the app must not keep the watchdog.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import Synchronization

/// Ticks for every heartbeat when it is due; there is no thread before the first one.
final class QueueProbeThread: Sendable {
    private struct State {
        var beats: [QueueProbe] = []
        var corrections: [LoopCorrection] = []
        var thread: AgentThread?
        var isStopped = false
    }
    private struct Bell: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_bell> }

    private let state = Mutex(State())
    /// Never freed; nil without memory, and then nothing beats.
    private let bell = stall_bell_create().map { Bell(pointer: $0) }

    /// Ticks for this queue from now on.
    func add(_ beat: QueueProbe) {
        guard let bell else { return }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.beats.append(beat)
            start(&state, bell)
        }
        stall_bell_ring(bell.pointer)
    }

    /// Answers these questions from now on.
    func add(_ correction: LoopCorrection) {
        guard let bell else { return }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.corrections.append(correction)
            start(&state, bell)
        }
        correction.connect(to: bell.pointer)
    }

    func remove(_ correction: LoopCorrection) {
        state.withLock { state in state.corrections.removeAll { $0 === correction } }
    }

    private func start(_ state: inout State, _ bell: Bell) {
        guard state.thread == nil else { return }
        state.thread = AgentThread(name: "stall-heartbeat") { [self] in
            stall_thread_wake_on_time()
            run(bell.pointer)
        }
    }

    /// Ticks for it no more. A beat that is out runs when the queue comes to it.
    func remove(_ beat: QueueProbe) {
        state.withLock { state in state.beats.removeAll { $0 === beat } }
    }

    /// Ends the thread.
    func stop() {
        let thread = state.withLock { state in
            state.isStopped = true
            state.beats = []
            state.corrections = []
            return state.thread.take()
        }
        guard let thread, let bell else { return }
        stall_bell_ring(bell.pointer)
        // One that is stuck in Dispatch or behind a CFRunLoop's lock must not keep the store from being closed.
        if !thread.join(within: .seconds(1)) { thread.detach() }
    }

    private func run(_ bell: UnsafeMutablePointer<stall_bell>) {
        while true {
            // Announced before the list is read, so that a ring in between is not slept through.
            stall_bell_announce(bell, UInt32(STALL_WATCHDOG_DOZING))
            let (beats, corrections, isStopped) = state.withLock {
                ($0.beats, $0.corrections, $0.isStopped)
            }
            if isStopped { return }
            for correction in corrections { correction.answer() }
            let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
            for beat in beats where beat.nextTick <= now && !beat.tick() { remove(beat) }
            let due = beats.lazy.map(\.nextTick).min()
            stall_bell_sleep(bell, UInt32(STALL_WATCHDOG_DOZING), due?.nanoseconds ?? .max)
        }
    }
}
