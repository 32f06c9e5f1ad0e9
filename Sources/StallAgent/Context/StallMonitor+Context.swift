// The app's context of a stall: hooks that are called while it is only suspected.

internal import StallModel

extension StallMonitor {
    /// Calls `body` when a callout has lasted for half its threshold, about when its first stack is captured: for
    /// context that is gone when the report is written, such as the depth of a queue.
    ///
    ///     monitor.onSuspicion { loop, elapsed in ["open connections": "\(pool.count)"] }
    ///
    /// If the callout becomes a stall, what `body` returns is part of the report's evidence, and of its log line. Most
    /// suspicions do not become stalls: expect a call for every callout of half the threshold.
    ///
    /// - Parameter body: Called on a thread of the agent, at the same time as the capture; the watchdog does not wait for
    ///   it. It gets the target's name and how long the callout has lasted. At most eight facts, of 200 bytes each, are
    ///   used. While it runs, no other hook is called; a hook that never returns is the last one called.
    public func onSuspicion(
        _ body: @escaping @Sendable (_ loop: String, _ elapsed: Duration) -> [String: String]
    ) {
        agent?.suspicions.add(body)
    }
}
