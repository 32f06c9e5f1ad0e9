// Which threads of the process belong to Dispatch, by the names it gives them. The Swift cooperative pool is made of
// them.

internal import StallCapture
internal import StallModel

/// Nothing here allocates: the watchdog asks.
enum PoolThreads {
    /// Visits Dispatch's workers in the order of their ids.
    ///
    /// Linux keeps 15 bytes of a name, and Dispatch keeps the last ones: `com.apple.root.default-qos` is seen as
    /// `oot.default-qos`.
    static func forEach(_ body: (RegisteredThread) -> Void) {
        StackSampler.forEachThread { id in
            guard isThread(id, named: "-qos") || isThread(id, named: ".overcommit") else { return }
            if let thread = try? RegisteredThread.found(id) { body(thread) }
        }
    }

    /// Visits the workers of the queue that Swift's pool runs on.
    static func forEachCooperative(_ body: (RegisteredThread) -> Void) {
        StackSampler.forEachThread { id in
            guard isCooperative(id) else { return }
            if let thread = try? RegisteredThread.found(id) { body(thread) }
        }
    }

    /// A new thread has the name of the one that made it until it takes its own: Dispatch's manager looks like a worker
    /// at first.
    static func isCooperative(_ id: ThreadID) -> Bool { isThread(id, named: "oot.default-qos") }

    /// Whether one of them is ready to run: what waits for a worker then only needs a CPU. So does a new worker, which
    /// has no name until it has run.
    static func areWaitingForCPU() -> Bool {
        var areWaiting = false
        StackSampler.forEachThread { id in
            guard !areWaiting else { return }
            var probe = ThreadStatReader(id)
            guard probe.state() == UInt8(ascii: "R") else { return }
            areWaiting =
                probe.cpuTime() == .zero || isThread(id, named: "-qos")
                || isThread(id, named: ".overcommit")
        }
        return areWaiting
    }
}
