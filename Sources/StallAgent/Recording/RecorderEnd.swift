// Requests the end of the recorder's thread from threads that must not wait for it, and lets others wait for it.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import StallRunLoop
internal import Synchronization

/// The end of an agent. Neither the request nor the wait allocates: a thread of the app may hold the heap's lock
/// forever.
final class RecorderEnd: @unchecked Sendable {
    // Unchecked because of the gate, which is a futex.
    private let wasRequested = Atomic<Bool>(false)
    private let wasFlushed = Atomic<Bool>(false)
    private let gate: UnsafeMutablePointer<stall_gate>
    private let teardown = AgentLocked<(@Sendable () -> Void)?>(nil)

    init() {
        gate = .allocate(capacity: 1)
        gate.initialize(to: stall_gate())
    }

    deinit { gate.deallocate() }

    /// - Parameter teardown: Ends the other parts of the agent. Runs on the recorder's thread, since it may wait for
    ///   the app.
    func prepare(_ teardown: @escaping @Sendable () -> Void) {
        self.teardown.withLock { $0 = teardown }
    }

    func request() { wasRequested.store(true, ordering: .sequentiallyConsistent) }
    var isRequested: Bool { wasRequested.load(ordering: .sequentiallyConsistent) }

    func runTeardown() { teardown.withLock { $0.take() }?() }

    /// The recorder has ended.
    func reach(wasFlushed flushed: Bool) {
        wasFlushed.store(flushed, ordering: .releasing)
        stall_gate_open(gate)
    }

    /// Waits for the recorder up to a deadline. Nil if it has not ended by then; else whether everything was written.
    func wait(until deadline: MonotonicInstant) -> Bool? {
        guard stall_gate_wait(gate, deadline.nanoseconds) else { return nil }
        return wasFlushed.load(ordering: .acquiring)
    }
}
