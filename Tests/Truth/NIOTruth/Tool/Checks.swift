// What has to hold beside the planted stalls: loops that cannot be watched, the fallback, loops that are watched twice and
// early, groups that are shut down while they are watched, the order of shutdown. The last line is:
// nio checks=N failed=N

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
        func of(_ loop: String) -> [StallReport] { of([loop]) }
        func of(_ loops: [String]) -> [StallReport] {
            all.withLock { $0.filter { loops.contains($0.loop ?? "") } }
        }
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
        twice()
        try twoMonitors()
        early()
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

    /// A group and its loops in any order, then without one of the watches, then without any.
    private func twice() {
        typealias Start = (MultiThreadedEventLoopGroup, String) -> WatchedEventLoops
        let ofGroup: Start = { [monitor] in monitor.watch($0, as: $1) }
        let ofLoop: Start = { [monitor] in
            do { return try monitor.watch($0.next(), as: $1 + "/0") } catch { fatalError("\(error)") }
        }
        for (name, first, second, endsFirst) in [
            ("group-loop", ofGroup, ofLoop, true), ("loop-group", ofLoop, ofGroup, false),
            ("group-group", ofGroup, ofGroup, true), ("loop-loop", ofLoop, ofLoop, false),
        ] {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let names = ["\(name)-1/0", "\(name)-2/0"]
            let watches = [first(group, "\(name)-1"), second(group, "\(name)-2")]
            Thread.sleep(forTimeInterval: 0.5)
            let isQuiet = reports.of(names).isEmpty
            stall(group, 300)
            let both = loops(names, count: 1)
            watches[endsFirst ? 0 : 1].stop()
            stall(group, 300)
            let one = loops(names, count: 2)
            watches[endsFirst ? 1 : 0].stop()
            stall(group, 300)
            Thread.sleep(forTimeInterval: 0.3)
            let left = endsFirst ? names[1] : names[0]
            check("\(name): idle is no stall", isQuiet)
            check("\(name): one report a stall", both == [names[1]] && one == [names[1], left])
            if both.count != 1 || one.count != 2 { print("\(name): \(both), \(one)") }
            check("\(name): none after both ended", reports.of(names).count == 2)
            try? group.syncShutdownGracefully()
        }
    }

    /// The loops of the reports, once there are so many: on a busy machine a report takes a while. Further ones would
    /// come by then.
    private func loops(_ names: [String], count: Int) -> [String] {
        for _ in 0..<200 where reports.of(names).count < count {
            Thread.sleep(forTimeInterval: 0.02)
        }
        Thread.sleep(forTimeInterval: 0.3)
        return reports.of(names).map(\.loop)
    }

    /// Stalls a group's loop, and waits until that is over.
    private func stall(_ group: MultiThreadedEventLoopGroup, _ milliseconds: Int) {
        try? group.next().submit { stallInScheduledTask(milliseconds) }.wait()
        Thread.sleep(forTimeInterval: 0.2)
    }

    /// A library has a monitor of its own.
    private func twoMonitors() throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let path = NSTemporaryDirectory() + "truth-nio-\(getpid())-other.sqlite"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let others = Received()
        let other = try StallMonitor.start(
            .init(app: "library", version: "1", store: path, threshold: .milliseconds(100)))
        other.onStall { others.add($0) }
        other.watch(group, as: "other")
        monitor.watch(group, as: "shared")
        Thread.sleep(forTimeInterval: 0.5)
        stall(group, 300)
        other.stop()
        Thread.sleep(forTimeInterval: 0.3)
        stall(group, 300)
        Thread.sleep(forTimeInterval: 0.3)
        check(
            "two monitors: each has one report of a stall, while it runs",
            others.of("other/0").count == 1 && reports.of("shared/0").count == 2)
        try? group.syncShutdownGracefully()
    }

    /// Blocks at any moment after `watch`, and loops that are busy for their first 150 ms.
    private func early() {
        var found = 0
        for round in 0...20 {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let name = "early-\(round)"
            monitor.watch(group, as: name)
            Thread.sleep(forTimeInterval: Double(round) / 100)
            stall(group, 140)
            if reports.first(of: name + "/0")?.mode == "waits" { found += 1 }
            try? group.syncShutdownGracefully()
        }
        check("a block right after watch is found: \(found) of 21", found == 21)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        loop.execute { [self] in
            monitor.watch(group, as: "busy")
            stallInScheduledTask(150)
        }
        Thread.sleep(forTimeInterval: 1)
        stall(group, 150)
        _ = loops(["busy/0"], count: 2)
        let modes = reports.of("busy/0").map(\.mode)
        check("a loop that is busy at first is watched by its waits", modes == ["waits", "waits"])
        try? group.syncShutdownGracefully()
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
