// Targets of other modules of the package: a thread whose waits they intercept (StallDoor), a loop that can only be
// polled (StallAgentNIO).

package import CLinux
internal import Logging
internal import StallCapture
internal import StallDetection
package import StallModel

/// A watch that another module of the package requested.
package final class ExternalWatch: Sendable {
    private let end: @Sendable () -> Void
    private let learn: @Sendable () -> Void

    fileprivate init(
        learn: @escaping @Sendable () -> Void = {}, _ end: @escaping @Sendable () -> Void
    ) {
        self.learn = learn
        self.end = end
    }

    /// Makes reports name the task that runs on the watched thread, if tasks do. Call it on that thread, some time after
    /// ``prepareTasks()``.
    package func learnTask() { learn() }

    /// Determines where threads store their tasks.
    package static func prepareTasks() { Task.detached { stall_jobs_learn_task() } }

    /// Ends the watch. Idempotent.
    package func stop() { end() }
}

extension StallMonitor {
    /// Whether an agent runs here. Otherwise preparations are unnecessary.
    package var isWatching: Bool { agent != nil }

    /// Writes to the agent's log.
    package func log(_ text: String) { configuration.logger.notice("\(text)") }

    /// Watches the calling thread by a beacon that the caller's module writes, until the thread ends.
    ///
    /// - Parameters:
    ///   - way: How its waits are observed; the mode in reports.
    ///   - detach: Ends the writing. Called once.
    package func watchThisThread(
        _ beacon: UnsafeMutablePointer<stall_beacon>, as name: String, threshold: Duration?,
        way: String, detach: @escaping @Sendable () -> Void
    ) -> ExternalWatch {
        let thread = RegisteredThread.current()
        stall_beacon_publish_thread(beacon, thread.id.rawValue)
        let shared = SharedBeacon(beacon)
        let target = ThreadTarget(thread, beacon: shared, modeName: { _ in way })
        let key = RegistrationKey.outside(UInt(bitPattern: beacon))
        watch(
            target, LoopBeacon(beacon), as: name, threshold: threshold, key: key,
            thread: thread.id, detach: detach)
        let outside = ExternalWatch(learn: { target.learnTask() }) { [weak self] in
            self?.unwatch(key)
        }
        // By the target, since the same thread may have other watches of this monitor.
        ThreadEnd.run(for: target) { outside.stop() }
        return outside
    }

    /// Watches a thread that can only be polled: `idleCheck` returns whether it is idle, and `post` runs a probe on it.
    ///
    /// - Parameters:
    ///   - thread: The thread, a gettid value.
    ///   - idleCheck: Called eight times per threshold on one of the agent's threads; nil if the thread is gone for
    ///     good.
    package func watchByPolling(
        thread: ThreadID, as name: String, threshold: Duration?, way: String,
        idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> ExternalWatch {
        watchByPolling(
            .one(thread), as: name, threshold: threshold, way: way, idleCheck: idleCheck, post: post
        )
    }

    /// Watches the threads of a pool whose names contain `text`: `post` enqueues a probe behind the work that waits for
    /// them. It is not observable whether any of them is idle.
    @discardableResult
    package func watchThreads(
        named text: StaticString, as name: String, threshold: Duration?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> ExternalWatch {
        watchByPolling(
            .named(text), as: name, threshold: threshold, way: "looks", idleCheck: { false },
            post: post)
    }

    private func watchByPolling(
        _ threads: PolledTarget.Threads, as name: String, threshold: Duration?, way: String,
        idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> ExternalWatch {
        guard let agent, let beacon = SharedBeacon() else { return ExternalWatch {} }
        let target = PolledTarget(
            threads, beacon: beacon, way: way, idleCheck: idleCheck, post: post)
        let probe = QueueProbe(
            target, beacon: beacon, threshold: effectiveThreshold(threshold, of: name))
        let key = RegistrationKey.outside(UInt(bitPattern: beacon.pointer))
        watch(
            target, LoopBeacon(beacon.pointer), as: name, threshold: threshold, key: key,
            thread: nil, detach: { agent.probeThread.remove(probe) })
        agent.probeThread.add(probe)
        return ExternalWatch { [weak self] in self?.unwatch(key) }
    }
}
