// The agent as a service of the app: it stops last, after the others have shut down.

#if NIO
internal import Dispatch
public import ServiceLifecycle
public import StallAgent

/// A service that runs until graceful shutdown, then writes pending reports and stops the monitor.
public struct StallService: Service {
    private let monitor: StallMonitor

    fileprivate init(_ monitor: StallMonitor) { self.monitor = monitor }

    public func run() async throws {
        // Cancellation ends it as well as shutdown.
        try? await gracefulShutdown()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            // Stopping waits for the disk, which must not block a thread of the cooperative pool.
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
