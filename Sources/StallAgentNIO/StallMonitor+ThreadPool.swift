// NIO's thread pool, which runs what may block: files, names. It is exhausted when work waits and no thread takes it.

#if NIO
public import NIOPosix
public import StallAgent

extension StallMonitor {
    /// Watches a thread pool: a stall is when an item waits for a thread for at least the threshold.
    ///
    /// An item that blocks a thread is what the pool is for. An empty item of the agent's is put in eight times a
    /// threshold (every 31 ms at 250 ms), one at a time: nothing else tells from outside that work waits.
    ///
    /// - Parameters:
    ///   - pool: The pool; `.singleton` for the one that NIO shares.
    ///   - name: What reports call it.
    ///   - threshold: How long an item may wait; the configuration's threshold when nil. At least 20 ms.
    public func watchNIOThreadPool(
        _ pool: NIOThreadPool, as name: String, threshold: Duration? = nil
    ) {
        watchThreads(
            named: "TP-#", as: name, threshold: threshold,
            post: { probe in pool.submit { _ in probe() } })
    }
}
#endif
