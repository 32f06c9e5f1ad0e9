// Calls the app's callbacks on a thread of their own: a callback that never returns affects neither reports nor other
// callbacks.
//
//     recorder -> queue -> stall-callback thread -> a callback
//                          exceeds the deadline: it is not called again, a new thread continues with the others

internal import CLinux
internal import StallDetection
internal import StallModel
internal import StallRunLoop
internal import Synchronization

/// The callbacks of `onStall` and the thread that runs them.
final class StallNotifier: Sendable {
    /// One callback of the app.
    private final class Handler: Sendable {
        let state: StallState
        let body: @Sendable (StallReport) -> Void
        /// The signal mask of the thread that registered it, so that threads started in the callback inherit that one.
        let mask = SignalMask.current()
        init(state: StallState, _ body: @escaping @Sendable (StallReport) -> Void) {
            self.state = state
            self.body = body
        }
    }

    /// A call in progress.
    private struct Call {
        let handler: Handler
        let began: MonotonicInstant
        /// The handlers that would have received the report after this one.
        var rest: ArraySlice<Handler>
        let report: StallReport
    }

    private struct State {
        var handlers: [Handler] = []
        /// The number of the current thread; an earlier one is stuck in a callback, and ends when that returns.
        var generation = 0
        var call: Call?
        var thread: AgentThread?
        /// The number of callbacks that were due but not made.
        var missed = 0
    }

    private let state = AgentLocked(State())
    /// The thread that runs a callback; 0 for none.
    private let caller = Atomic<Int32>(0)
    private let queue = BoundedQueue<StallReport>(capacity: 64)
    private let deadline: Duration
    private let clock: @Sendable () -> MonotonicInstant

    /// - Parameter deadline: How long a callback may take.
    init(
        deadline: Duration,
        clock: @escaping @Sendable () -> MonotonicInstant = {
            MonotonicInstant(nanoseconds: stall_monotonic_ns())
        }
    ) {
        self.deadline = deadline
        self.clock = clock
    }

    func add(state wanted: StallState, _ body: @escaping @Sendable (StallReport) -> Void) {
        state.withLock { state in
            state.handlers.append(Handler(state: wanted, body))
            if state.thread == nil { start(&state, with: nil) }
        }
    }

    /// Whether any callback is registered for this state.
    func isWanted(_ wanted: StallState) -> Bool {
        state.withLock { state in state.handlers.contains { $0.state == wanted } }
    }

    func notify(_ report: StallReport) {
        guard isWanted(report.state) else { return }
        abandonOverdue()
        queue.push(report)
    }

    /// The number of callbacks since the last call that were due but not made, because the one before took too long.
    func takeMissed() -> Int {
        state.withLock { state in
            defer { state.missed = 0 }
            return state.missed + queue.takeDropped()
        }
    }

    /// Runs the callbacks that are due and ends the thread. A callback that is still running at its deadline is
    /// abandoned.
    func stop() {
        queue.close()
        while let thread = state.withLock({ $0.thread }) {
            if thread.join(within: remainingTime) { return }
            abandonOverdue()
        }
    }

    /// Called from a callback that stops the agent: its own thread cannot be joined. Does not wait: another thread may
    /// hold the lock and wait for the heap.
    func detachIfCurrent() {
        guard caller.load(ordering: .relaxed) == stall_gettid() else { return }
        state.withLockIfAvailable { state in
            guard let thread = state.thread, thread.isCurrent else { return }
            thread.detach()
            state.thread = nil
        }
    }

    /// The remaining time of the call in progress.
    private var remainingTime: Duration {
        let began = state.withLock { $0.call?.began }
        return max(.milliseconds(1), began.map { $0 + deadline - clock() } ?? .milliseconds(100))
    }

    /// Abandons a callback that has exceeded its deadline, and continues without it.
    private func abandonOverdue() {
        state.withLock { state in
            guard let call = state.call, clock() - call.began >= deadline else { return }
            state.handlers.removeAll { $0 === call.handler }
            state.call = nil
            state.missed += 1
            state.thread?.detach()
            start(&state, with: call)
        }
    }

    /// Starts a thread that finishes the rest of a call and then reads reports from the queue.
    private func start(_ state: inout State, with call: Call?) {
        state.generation += 1
        let generation = state.generation
        state.thread = AgentThread(name: "stall-callback") { [self] in
            if let call, !make(call.rest, call.report, generation) { return }
            while let report = queue.pop() {
                let handlers = self.state.withLock { state in
                    state.handlers.filter { $0.state == report.state }
                }
                guard make(handlers[...], report, generation) else { return }
            }
        }
    }

    /// Calls handlers one after another. Returns false if another thread does it now.
    private func make(
        _ handlers: ArraySlice<Handler>, _ report: StallReport, _ generation: Int
    ) -> Bool {
        var rest = handlers
        while let handler = rest.popFirst() {
            let call = Call(handler: handler, began: clock(), rest: rest, report: report)
            let mayCall = state.withLock { state in
                guard state.generation == generation else { return false }
                state.call = call
                return true
            }
            guard mayCall, !ProcessExit.isOver else { return false }
            caller.store(stall_gettid(), ordering: .relaxed)
            handler.mask.run { handler.body(report) }
            _ = caller.compareExchange(
                expected: stall_gettid(), desired: 0, ordering: .relaxed)
            let isCurrent = state.withLock { state in
                guard state.generation == generation else { return false }
                state.call = nil
                return true
            }
            guard isCurrent else { return false }
        }
        return true
    }
}
