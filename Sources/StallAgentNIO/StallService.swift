// The agent among an app's services: it stops last, when the others have shut down.

#if NIO
internal import Dispatch
public import ServiceLifecycle
public import StallAgent

/// A service that runs until graceful shutdown, then writes what is waiting and stops the monitor.
public struct StallService: Service {
    private let monitor: StallMonitor

    fileprivate init(_ monitor: StallMonitor) { self.monitor = monitor }

    public func run() async throws {
        // Cancelled or shut down: both end it.
        try? await gracefulShutdown()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            // Stopping waits for the disk, which is nothing for a thread of the pool.
            DispatchQueue.global().async {
                monitor.stop()
                done.resume()
            }
        }
    }
}

extension StallMonitor {
    /// The monitor as a service: `Application(router: router, services: [monitor.service])`.
    public var service: StallService { StallService(self) }
}
#endif
