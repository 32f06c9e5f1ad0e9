// SwiftNIO event loops, watched by the waits of their threads (StallDoor). NIO's metrics delegate does not suffice: it
// counts tasks and mistakes channel handlers for sleep, and the singleton group cannot have one.

#if NIO
internal import CLinux
public import NIOCore
public import NIOPosix
public import StallAgent
internal import StallDoor
internal import StallModel
internal import StallRunLoop

extension StallMonitor {
    /// Watches every loop of a group, as `http/0`, `http/1` and so on: a loop that does not return to its wait within
    /// the threshold is stalled, in a channel handler, a future's callback or a task.
    ///
    /// Each loop's watch begins when it next runs a task, and ends with its thread: a group may be shut down at any
    /// time. A loop that is watched several times, by a library and its app, remains one target, with the name of the
    /// last watch and the shortest threshold, until all have ended.
    ///
    /// - Parameters:
    ///   - group: The group; Hummingbird 2 and gRPC 2 use `MultiThreadedEventLoopGroup.singleton`.
    ///   - name: The name of the targets in reports.
    ///   - threshold: How long a loop may be busy; the configuration's threshold if nil. At least 20 ms.
    @discardableResult
    public func watch(
        _ group: MultiThreadedEventLoopGroup, as name: String, threshold: Duration? = nil
    ) -> WatchedEventLoops {
        let watched = WatchedEventLoops()
        for (number, loop) in group.makeIterator().enumerated() {
            watchThread(of: loop, as: "\(name)/\(number)", threshold: threshold, watched)
        }
        return watched
    }

    /// Watches one loop.
    ///
    /// - Throws: ``NIOWatchError/notThreadBound`` for a loop that has no thread of its own.
    @discardableResult
    public func watch(_ loop: any EventLoop, as name: String, threshold: Duration? = nil)
        throws(NIOWatchError) -> WatchedEventLoops
    {
        let kind = String(reflecting: type(of: loop))
        guard kind == "NIOPosix.SelectableEventLoop" else {
            log("\(name) is not watched: a loop of type \(kind) has no thread of its own")
            throw .notThreadBound
        }
        let watched = WatchedEventLoops()
        watchThread(of: loop, as: name, threshold: threshold, watched)
        return watched
    }

    private func watchThread(
        of loop: any EventLoop, as name: String, threshold: Duration?, _ watched: WatchedEventLoops
    ) {
        guard isWatching else { return }
        // With NIO's global executor tasks run on the loops.
        ExternalWatch.prepareTasks()
        let watch: @Sendable () -> Void = { [self] in
            let waits = watchWaits(ofRunningLoopAs: name, threshold: threshold) { thread in
                let answer = stall_task_waits_for_events(thread)
                return answer < 0 ? nil : answer == 1
            }
            watched.add(waits)
            check(waits, of: loop, on: ThreadID(rawValue: stall_gettid()), after: .milliseconds(50))
            { [self] in log("\(name) does not wait through libc: it is polled instead") }
        }
        // The caller's next work belongs to the loop.
        if loop.inEventLoop { watch() } else { loop.execute(watch) }
    }

    /// Polls the loop if the agent has seen it wait without having observed that. As long as it was only busy, it is
    /// not known which it is.
    private func check(
        _ waits: WatchedWaits, of loop: any EventLoop, on thread: ThreadID, after delay: TimeAmount,
        log: @escaping @Sendable () -> Void
    ) {
        loop.scheduleTask(in: delay) { [self] in
            guard waits.waitCount == 0 else { return waits.learnTask() }
            guard !waits.hasStopped else { return }
            guard waits.isBypassed else {
                let next = min(delay * 2, .seconds(10))
                return check(waits, of: loop, on: thread, after: next, log: log)
            }
            let file = SystemCallFile(thread)
            let isNew = waits.poll(
                way: "looks", idleCheck: { file.isWaiting },
                post: { probe in loop.execute { probe() } })
            if isNew { log() }
        }
    }
}

/// Event loops that are watched, from ``StallAgent/StallMonitor/watch(_:as:threshold:)``.
///
/// **Thread safety:** may be used on any thread. Releasing it does not end the watch.
public final class WatchedEventLoops: Sendable {
    private let state = AgentLocked((waits: [WatchedWaits](), isStopped: false))

    init() {}

    /// The watch of a loop has begun.
    func add(_ waits: WatchedWaits) {
        let isStopped = state.withLock { state in
            if !state.isStopped { state.waits.append(waits) }
            return state.isStopped
        }
        if isStopped { waits.stop() }
    }

    /// Ends the watch. Other watches of the same loops continue.
    public func stop() {
        let ended = state.withLock { state in
            defer { state = ([], true) }
            return state.waits
        }
        for waits in ended { waits.stop() }
    }
}

/// Why a loop cannot be watched.
public enum NIOWatchError: Error, Equatable, CustomStringConvertible {
    /// The loop has no thread of its own: it is for tests, or runs on Dispatch's threads.
    case notThreadBound

    public var description: String {
        switch self {
        case .notThreadBound: "the event loop has no thread of its own"
        }
    }
}
#endif
