// The detectors that are compared, behind one face.

import Foundation
import StallAgent

/// Watches loops in one way, and notes when it noticed a stall.
final class Watch: @unchecked Sendable {
    // Unchecked because the compiler does not see that `lock` guards what changes.
    private let lock = NSLock()
    private var noticed: [Noticed] = []
    private var monitor: StallMonitor?
    private var classics: [ClassicDetector] = []
    private let watcher: Watcher
    private let directory = NSTemporaryDirectory() + "/stallwatch-bench-\(getpid())"

    struct Noticed {
        var loop: String
        /// How much later than the threshold.
        var delay: Duration
    }

    /// The stall that a watcher has to detect.
    var threshold: Duration { watcher == .classicLong ? .seconds(1) : .milliseconds(250) }

    init(_ watcher: Watcher) {
        self.watcher = watcher
        // Any app has a second thread. In a single-threaded process the kernel looks up descriptors, and malloc its
        // arenas, more cheaply (measured: 80 ns an iteration), which is not the detector's cost.
        Thread.detachNewThread { while true { pause() } }
        guard watcher == .stallwatch else { return }
        let monitor = try? StallMonitor.start(
            .init(app: "bench", version: "1", store: directory + "/stalls.sqlite"))
        self.monitor = monitor
        monitor?.onStall(at: .open) { [self] report in
            note(Noticed(loop: report.loop, delay: report.detectionDelay))
        }
    }

    /// Watches the loop of the calling thread.
    func watch(_ loop: EventRunLoop, as name: String) {
        monitor?.watch(loop, as: name, threshold: threshold)
        let (timeout, count): (Duration, Int)
        switch watcher {
        case .none, .stallwatch: return
        case .classicShort: (timeout, count) = (.milliseconds(50), 5)
        case .classicLong: (timeout, count) = (.seconds(1), 1)
        }
        let classic = ClassicDetector(timeout: timeout, count: count) { [self] delay in
            note(Noticed(loop: name, delay: delay))
        }
        classic.watch(loop)
        lock.withLock { classics.append(classic) }
    }

    func stop() {
        monitor?.stop()
        for classic in classics { classic.stop() }
        try? FileManager.default.removeItem(atPath: directory)
    }

    func allNoticed() -> [Noticed] { lock.withLock { noticed } }

    private func note(_ stall: Noticed) { lock.withLock { noticed.append(stall) } }
}

/// The recipe in the literature: an observer signals a semaphore at every activity, and a thread waits for it with a
/// timeout. A number of consecutive timeouts while the loop was last seen busy are a stall.
final class ClassicDetector: @unchecked Sendable {
    // Unchecked as the recipe is: the activity and its time are written by the loop and read by the thread.
    private let semaphore = DispatchSemaphore(value: 0)
    private var activity = LoopActivity.beforeWaiting
    private var changed = ContinuousClock.now
    private var isStopped = false
    private let timeout: Duration
    private let count: Int
    private let report: @Sendable (Duration) -> Void

    init(timeout: Duration, count: Int, report: @escaping @Sendable (Duration) -> Void) {
        self.timeout = timeout
        self.count = count
        self.report = report
    }

    func watch(_ loop: EventRunLoop) {
        let observer = LoopObserver { [self] _, activity in
            self.activity = activity
            changed = ContinuousClock.now
            semaphore.signal()
        }
        loop.add(observer, toMode: .common)
        Thread.detachNewThread { [self] in
            var timeouts = 0
            while !isStopped {
                let nanoseconds = Int(timeout / .nanoseconds(1))
                guard semaphore.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .timedOut
                else {
                    timeouts = 0
                    continue
                }
                guard activity == .beforeSources || activity == .afterWaiting else { continue }
                timeouts += 1
                if timeouts == count {
                    report(ContinuousClock.now - changed - timeout * count)
                }
            }
        }
    }

    func stop() { isStopped = true }
}
