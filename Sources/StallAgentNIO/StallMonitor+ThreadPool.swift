// NIO's thread pool, which runs blocking work: files, name resolution. It is exhausted if work waits and no thread
// becomes free.

#if NIO
public import NIOPosix
public import StallAgent

extension StallMonitor {
    /// Watches a thread pool: a stall means that an item waits for a thread for at least the threshold.
    ///
    /// An item may block its thread: that is the purpose of the pool. The agent enqueues an empty probe eight times per
    /// threshold (every 31 ms at 250 ms), one at a time, because the pool does not expose whether work waits.
    ///
    /// - Parameters:
    ///   - pool: The pool; `.singleton` for the one that NIO shares.
    ///   - name: The target's name in reports.
    ///   - threshold: How long an item may wait; the configuration's threshold if nil. At least 20 ms.
    public func watchNIOThreadPool(
        _ pool: NIOThreadPool, as name: String, threshold: Duration? = nil
    ) {
        watchThreads(
            named: "TP-#", as: name, threshold: threshold,
            post: { probe in pool.submit { _ in probe() } })
    }
}
#endif
