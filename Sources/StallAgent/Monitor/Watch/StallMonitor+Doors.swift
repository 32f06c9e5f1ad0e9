// Targets of other modules of the package: a thread whose waits they intercept (StallDoor), a loop that can only be
// polled (StallAgentNIO).

package import CLinux
internal import Logging
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// A watch that another module of the package requested.
package final class ExternalWatch: Sendable {
    private let end: @Sendable () -> Void
    /// The thread that it watches, with others or alone.
    private let thread: WatchedLoopThread?

    fileprivate init(of thread: WatchedLoopThread? = nil, _ end: @escaping @Sendable () -> Void) {
        self.thread = thread
        self.end = end
    }

    /// Makes reports name the task that runs on the watched thread, if tasks do. Call it on that thread, some time after
    /// ``prepareTasks()``.
    package func learnTask() { thread?.learnTask() }

    /// Determines where threads store their tasks.
    package static func prepareTasks() { Task.detached { stall_jobs_learn_task() } }

    /// Whether the thread was seen waiting in the kernel although none of its waits had been observed.
    package var isBypassed: Bool { thread?.isBypassed ?? false }

    /// Polls the watched thread from now on, for all that watch it: its waits are not observable. False if it is polled
    /// already. Parameters: `StallMonitor.watchThreads(named:as:threshold:post:)`.
    package func poll(
        way: String, idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> Bool {
        thread?.poll(way: way, idleCheck: idleCheck, post: post) ?? false
    }

    /// Ends the watch. Idempotent.
    package func stop() { end() }
}

extension StallMonitor {
    /// Whether an agent runs here. Otherwise preparations are unnecessary.
    package var isWatching: Bool { agent != nil }

    /// Writes to the agent's log.
    package func log(_ text: String) { configuration.logger.notice("\(text)") }

    /// Watches the calling thread by the beacon that the caller's module writes for it, until the thread ends. A thread
    /// that is watched already remains one target, with the name of its last watch and the shortest threshold of all.
    ///
    /// - Parameters:
    ///   - beacon: The thread's only one as long as any watch of it lasts.
    ///   - way: How its waits are observed; the mode in reports.
    ///   - isWaitingUnseen: Whether the thread waits although the beacon has this word, because no wait of it was observed
    ///     so far; nil if that cannot be determined. Called on the watchdog's thread: it must neither allocate nor wait.
    ///   - detach: Ends this watch's part of the writing. Called once.
    package func watchThisThread(
        _ beacon: UnsafeMutablePointer<stall_beacon>, as name: String, threshold: Duration?,
        way: String, isWaitingUnseen: (@Sendable (UInt64) -> Bool?)? = nil,
        detach: @escaping @Sendable () -> Void
    ) -> ExternalWatch {
        guard let agent else {
            detach()
            return ExternalWatch {}
        }
        let id = ThreadID(rawValue: stall_gettid())
        let shared = SharedBeacon(beacon)
        let (thread, number, isNew) = agent.loopThreads.withLock {
            threads -> (WatchedLoopThread, Int?, Bool) in
            if let known = threads[id], known.beacon.pointer == shared.pointer,
                let number = known.add(as: name, threshold: threshold, detach: detach)
            {
                return (known, number, false)
            }
            stall_beacon_publish_thread(shared.pointer, id.rawValue)
            let new = WatchedLoopThread(
                .current(), shared, way: way, isWaitingUnseen: isWaitingUnseen, monitor: self)
            threads[id] = new
            return (new, new.add(as: name, threshold: threshold, detach: detach), true)
        }
        // By the thread's watches, since it may have others of this monitor.
        if isNew { ThreadEnd.run(for: thread) { [weak thread] in thread?.end() } }
        thread.register()
        return ExternalWatch(of: thread) { if let number { thread.remove(number) } }
    }

    /// Watches the threads of a pool whose names contain `text`: `post` enqueues a probe behind the work that waits for
    /// them. It is not observable whether any of them is idle.
    @discardableResult
    package func watchThreads(
        named text: StaticString, as name: String, threshold: Duration?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> ExternalWatch {
        guard let beacon = SharedBeacon() else { return ExternalWatch {} }
        let target = PolledTarget(
            .named(text), beacon: beacon, way: "looks", idleCheck: { false }, post: post)
        let key = RegistrationKey.outside(UInt(bitPattern: beacon.pointer))
        watchByPolling(target, beacon, as: name, threshold: threshold, key: key)
        return ExternalWatch { [weak self] in self?.unwatch(key) }
    }

    /// - Parameter detach: Called when the target is not watched any more, or not by this registration.
    func watchByPolling(
        _ target: PolledTarget, _ beacon: SharedBeacon, as name: String, threshold: Duration?,
        key: RegistrationKey, detach: @escaping @Sendable () -> Void = {}
    ) {
        guard let agent else { return detach() }
        let probe = QueueProbe(
            target, beacon: beacon, threshold: effectiveThreshold(threshold, of: name))
        watch(
            target, LoopBeacon(beacon.pointer), as: name, threshold: threshold, key: key,
            thread: nil,
            detach: {
                agent.probeThread.remove(probe)
                detach()
            })
        agent.probeThread.add(probe)
    }
}
