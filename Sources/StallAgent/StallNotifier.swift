// Calls the app back about its stalls, on a thread of its own: a callback that never returns costs later callbacks,
// not reports.

internal import StallModel
internal import Synchronization

/// The callbacks of `onStall` and the thread that runs them.
final class StallNotifier: Sendable {
    private struct Handler: Sendable {
        let state: StallState
        let body: @Sendable (StallReport) -> Void
    }

    private let handlers = Mutex<[Handler]>([])
    private let thread = Mutex<AgentThread?>(nil)
    private let queue = BoundedQueue<StallReport>(capacity: 64)

    func add(state: StallState, _ body: @escaping @Sendable (StallReport) -> Void) {
        handlers.withLock { $0.append(Handler(state: state, body: body)) }
        thread.withLock { thread in
            guard thread == nil else { return }
            thread = AgentThread(name: "stall-callback") { [self] in
                while let report = queue.pop() {
                    let bodies = handlers.withLock {
                        $0.filter { $0.state == report.state }.map(\.body)
                    }
                    for body in bodies { body(report) }
                }
            }
        }
    }

    /// Whether anyone wants to hear of reports in this state.
    func isWanted(_ state: StallState) -> Bool {
        handlers.withLock { handlers in handlers.contains { $0.state == state } }
    }

    func notify(_ report: StallReport) {
        if isWanted(report.state) { queue.push(report) }
    }

    /// Runs the callbacks that are due and ends the thread.
    func stop() {
        queue.close()
        let thread = thread.withLock { $0.take() }
        if let thread, !thread.isCurrent { thread.join() }
    }
}
