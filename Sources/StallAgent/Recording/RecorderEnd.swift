// How the recorder's thread is told to end, by threads that may not wait for it, and how they learn that it has.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The end of an agent. Asking for it and waiting for it allocates nothing: a thread of the app may hold the heap's
/// lock for ever.
final class RecorderEnd: @unchecked Sendable {
    // Unchecked because of the gate, which is a futex.
    private let isAsked = Atomic<Bool>(false)
    private let wasFlushed = Atomic<Bool>(false)
    private let gate: UnsafeMutablePointer<stall_gate>
    private let teardown = Mutex<(@Sendable () -> Void)?>(nil)

    init() {
        gate = .allocate(capacity: 1)
        gate.initialize(to: stall_gate())
    }

    deinit { gate.deallocate() }

    /// - Parameter teardown: Ends the other parts of the agent. Runs on the recorder's thread, since it may wait for the app.
    func prepare(_ teardown: @escaping @Sendable () -> Void) {
        self.teardown.withLock { $0 = teardown }
    }

    func ask() { isAsked.store(true, ordering: .sequentiallyConsistent) }
    var isWanted: Bool { isAsked.load(ordering: .sequentiallyConsistent) }

    func runTeardown() { teardown.withLock { $0.take() }?() }

    /// The recorder is done.
    func reach(wasFlushed flushed: Bool) {
        wasFlushed.store(flushed, ordering: .releasing)
        stall_gate_open(gate)
    }

    /// Waits for the recorder up to an instant. Nil when it is not done by then; else whether everything was written.
    func wait(until deadline: MonotonicInstant) -> Bool? {
        guard stall_gate_wait(gate, deadline.nanoseconds) else { return nil }
        return wasFlushed.load(ordering: .acquiring)
    }
}
