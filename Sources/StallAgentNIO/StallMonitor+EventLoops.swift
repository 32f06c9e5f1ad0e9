// SwiftNIO event loops, watched by the waits of their threads (StallDoor). NIO's metrics delegate does not suffice: it
// counts tasks and mistakes channel handlers for sleep, and the singleton group cannot have one.

#if NIO
internal import CLinux
public import NIOCore
public import NIOPosix
public import StallAgent
internal import StallDoor
internal import StallModel

extension StallMonitor {
    /// Watches every loop of a group, as `http/0`, `http/1` and so on: a loop that does not return to its wait within
    /// the threshold is stalled, in a channel handler, a future's callback or a task.
    ///
    /// Each loop's watch begins when it next runs a task, and ends with its thread: a group may be shut down at any
    /// time.
    ///
    /// - Parameters:
    ///   - group: The group; Hummingbird 2 and gRPC 2 use `MultiThreadedEventLoopGroup.singleton`.
    ///   - name: The name of the targets in reports.
    ///   - threshold: How long a loop may be busy; the configuration's threshold if nil. At least 20 ms.
    public func watch(
        _ group: MultiThreadedEventLoopGroup, as name: String, threshold: Duration? = nil
    ) {
        for (number, loop) in group.makeIterator().enumerated() {
            watchThread(of: loop, as: "\(name)/\(number)", threshold: threshold)
        }
    }

    /// Watches one loop.
    ///
    /// - Throws: ``NIOWatchError/notThreadBound`` for a loop that has no thread of its own.
    public func watch(_ loop: any EventLoop, as name: String, threshold: Duration? = nil)
        throws(NIOWatchError)
    {
        guard String(reflecting: type(of: loop)) == "NIOPosix.SelectableEventLoop" else {
            throw .notThreadBound
        }
        watchThread(of: loop, as: name, threshold: threshold)
    }

    private func watchThread(of loop: any EventLoop, as name: String, threshold: Duration?) {
        guard isWatching else { return }
        // With NIO's global executor tasks run on the loops.
        ExternalWatch.prepareTasks()
        loop.execute { [self] in
            let waits = watchWaits(ofCurrentThreadAs: name, threshold: threshold)
            let thread = ThreadID(rawValue: stall_gettid())
            // By then the loop has waited, at least for this task.
            loop.scheduleTask(in: .milliseconds(50)) { [self] in
                guard waits.waitCount == 0 else { return waits.learnTask() }
                waits.stop()
                log("\(name) does not wait through libc: it is looked at instead")
                watchByPolling(of: loop, on: thread, as: name, threshold: threshold)
            }
        }
    }

    private func watchByPolling(
        of loop: any EventLoop, on thread: ThreadID, as name: String, threshold: Duration?
    ) {
        let file = SystemCallFile(thread)
        _ = watchByPolling(
            thread: thread, as: name, threshold: threshold, way: "looks",
            idleCheck: { file.isWaiting }, post: { probe in loop.execute { probe() } })
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
