// What has to hold beside the planted stalls: loops that cannot be watched, the fallback, groups that are shut down while
// they are watched, the order of shutdown. The last line is: nio checks=N failed=N

import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import ServiceLifecycle
import StallAgent
import StallAgentNIO
import Synchronization

final class Checks: Sendable {
    let monitor: StallMonitor
    let reports = Received()
    private let results = Mutex((count: 0, failed: 0))

    /// The reports so far.
    final class Received: Sendable {
        private let all = Mutex<[StallReport]>([])
        func add(_ report: StallReport) { all.withLock { $0.append(report) } }
        func of(_ loop: String) -> [StallReport] { all.withLock { $0.filter { $0.loop == loop } } }
        /// Waits for the first report of a loop.
        func first(of loop: String) -> StallReport? {
            for _ in 0..<200 {
                if let report = of(loop).first { return report }
                Thread.sleep(forTimeInterval: 0.02)
            }
            return nil
        }
    }

    init(store: String) throws {
        monitor = try .start(
            .init(app: "truth-nio", version: "1", store: store, threshold: .milliseconds(100)))
        let reports = reports
        monitor.onStall { reports.add($0) }
    }

    private func check(_ name: String, _ isRight: Bool) {
        print("\(isRight ? "passed" : "FAILED"): \(name)")
        results.withLock {
            $0.count += 1
            if !isRight { $0.failed += 1 }
        }
    }

    /// Runs all; false if one failed.
    func run() async throws -> Bool {
        embeddedLoop()
        fallback()
        shutdown()
        try await order()
        let (count, failed) = results.withLock { $0 }
        print("nio checks=\(count) failed=\(failed)")
        return failed == 0
    }

    private func embeddedLoop() {
        let loop = EmbeddedEventLoop()
        var refusal: NIOWatchError?
        do throws(NIOWatchError) { try monitor.watch(loop, as: "embedded") } catch {
            refusal = error
        }
        check("a loop without a thread of its own is refused", refusal == .notThreadBound)
        do throws(NIOWatchError) {
            try monitor.watch(NIOAsyncTestingEventLoop(), as: "testing")
            check("a loop on Dispatch's threads is refused", false)
        } catch { check("a loop on Dispatch's threads is refused", true) }
    }

    /// Where libc is not called, the loop is looked at.
    private func fallback() {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        disableDoor(true)
        monitor.watch(group, as: "polled")
        Thread.sleep(forTimeInterval: 0.5)
        disableDoor(false)
        let isQuiet = reports.of("polled/0").isEmpty
        group.next().execute { stallInScheduledTask(400) }
        let report = reports.first(of: "polled/0")
        check("a loop that does not wait through libc is polled", report?.mode == "looks")
        check("its stall is found, and its idle time is none", report != nil && isQuiet)
        let functions = report?.samples.flatMap(\.frames).compactMap(\.function) ?? []
        check("in the right function", functions.contains("stallInScheduledTask(_:)"))
        try? group.syncShutdownGracefully()
        Thread.sleep(forTimeInterval: 0.4)
        check("its end is no stall", reports.of("polled/0").count == 1)
    }

    private func shutdown() {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        monitor.watch(group, as: "ended")
        Thread.sleep(forTimeInterval: 0.2)
        try? group.syncShutdownGracefully()
        // Watching begins on the loop's thread: this one has none any more.
        let gone = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try? gone.syncShutdownGracefully()
        monitor.watch(gone, as: "gone")
        // A group that ends right after.
        let brief = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        monitor.watch(brief, as: "brief")
        try? brief.syncShutdownGracefully()
        Thread.sleep(forTimeInterval: 0.4)
        let stalls = ["ended/0", "ended/1", "gone/0", "brief/0"].flatMap { reports.of($0) }
        check("a group that is shut down while it is watched is no stall", stalls.isEmpty)
        let other = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        monitor.watch(other, as: "other")
        Thread.sleep(forTimeInterval: 0.2)
        other.next().execute { stallInScheduledTask(300) }
        check("other loops are watched after it", reports.first(of: "other/0") != nil)
        try? other.syncShutdownGracefully()
    }

    /// The app's service stalls while it shuts down; the agent stops after it.
    private func order() async throws {
        struct App: Service {
            let monitor: StallMonitor
            func run() async throws {
                try await gracefulShutdown()
                await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
                    Thread.detachNewThread {
                        let thread = monitor.watchCurrentThread(as: "closing")
                        thread.begin()
                        stallInThreadPool(300)
                        thread.end()
                        done.resume()
                    }
                }
            }
        }
        var logger = Logger(label: "services")
        logger.logLevel = .critical
        let services = ServiceGroup(
            services: [monitor.service, App(monitor: monitor)], gracefulShutdownSignals: [],
            logger: logger)
        async let ended: Void = services.run()
        try await Task.sleep(for: .milliseconds(200))
        await services.triggerGracefulShutdown()
        try await ended
        check("a stall of a service that shuts down is reported", reports.of("closing").count == 1)
        check("the agent has stopped with the services", monitor.stop(within: .seconds(1)))
    }
}
