// Finds Dispatch's threads by their names. The Swift cooperative pool consists of them.

internal import StallCapture
internal import StallModel

/// Nothing here allocates, because the watchdog calls it.
enum PoolThreads {
    /// Visits Dispatch's workers in order of thread id.
    ///
    /// Linux stores 15 bytes of a name, and Dispatch passes the last ones: `com.apple.root.default-qos` appears as
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

    /// A new thread has its creator's name until it sets its own: Dispatch's manager looks like a worker at first.
    static func isCooperative(_ id: ThreadID) -> Bool { isThread(id, named: "oot.default-qos") }

    /// Whether a worker is runnable: work that waits for one then only lacks a CPU. A new worker counts as well; it has
    /// no name until it has run.
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
