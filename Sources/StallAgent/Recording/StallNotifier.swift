// Calls the app back about its stalls, on a thread of its own: a callback that never returns costs its own later calls,
// not reports, and not the callbacks of others.
//
//     recorder -> queue -> stall-callback thread -> a callback
//                          still in it after the deadline: it is called no more, the rest goes on on a new thread

internal import CLinux
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The callbacks of `onStall` and the thread that runs them.
final class StallNotifier: Sendable {
    /// One callback of the app's.
    private final class Handler: Sendable {
        let state: StallState
        let body: @Sendable (StallReport) -> Void
        /// Who asked for it blocks these signals: what is started in the callback is to inherit no other mask.
        let mask = SignalMask.current()
        init(state: StallState, _ body: @escaping @Sendable (StallReport) -> Void) {
            self.state = state
            self.body = body
        }
    }

    /// A call that is going on.
    private struct Call {
        let handler: Handler
        let began: MonotonicInstant
        /// What the report would still have been told to.
        var rest: ArraySlice<Handler>
        let report: StallReport
    }

    private struct State {
        var handlers: [Handler] = []
        /// The number of the thread that may go on; an earlier one is stuck in a callback, and ends when that returns.
        var generation = 0
        var call: Call?
        var thread: AgentThread?
        /// Callbacks that were due and were not made.
        var missed = 0
    }

    private let state = Mutex(State())
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

    /// Whether anyone wants to hear of reports in this state.
    func isWanted(_ wanted: StallState) -> Bool {
        state.withLock { state in state.handlers.contains { $0.state == wanted } }
    }

    func notify(_ report: StallReport) {
        guard isWanted(report.state) else { return }
        giveUpOverdue()
        queue.push(report)
    }

    /// How many callbacks were due and not made, since the last call: because the one before took too long.
    func takeMissed() -> Int {
        state.withLock { state in
            defer { state.missed = 0 }
            return state.missed + queue.takeDropped()
        }
    }

    /// Runs the callbacks that are due and ends the thread. One that is still running at its deadline is left behind.
    func stop() {
        queue.close()
        while let thread = state.withLock({ $0.thread }) {
            if thread.join(within: remainingTime) { return }
            giveUpOverdue()
        }
    }

    /// Called by one of the callbacks, which end the agent: its thread cannot be waited for.
    func leaveIfCurrent() {
        state.withLock { state in
            guard let thread = state.thread, thread.isCurrent else { return }
            thread.detach()
            state.thread = nil
        }
    }

    /// How long the call that is going on may still take.
    private var remainingTime: Duration {
        let began = state.withLock { $0.call?.began }
        return max(.milliseconds(1), began.map { $0 + deadline - clock() } ?? .milliseconds(100))
    }

    /// Leaves a callback alone that has taken longer than it may, and goes on without it.
    private func giveUpOverdue() {
        state.withLock { state in
            guard let call = state.call, clock() - call.began >= deadline else { return }
            state.handlers.removeAll { $0 === call.handler }
            state.call = nil
            state.missed += 1
            state.thread?.detach()
            start(&state, with: call)
        }
    }

    /// Starts a thread that finishes the rest of a call and then takes reports from the queue.
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

    /// Calls handlers one after the other. Returns false when another thread has taken over.
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
            guard mayCall else { return false }
            handler.mask.run { handler.body(report) }
            let goesOn = state.withLock { state in
                guard state.generation == generation else { return false }
                state.call = nil
                return true
            }
            guard goesOn else { return false }
        }
        return true
    }
}
