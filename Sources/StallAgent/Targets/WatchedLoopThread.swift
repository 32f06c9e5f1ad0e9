// A thread with a loop of another library, and all that watch it: the app, and a library that it uses. It is one target.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import StallRunLoop

/// The watches of one thread by one monitor.
///
/// **Thread safety:** may be used on any thread but the watchdog's.
final class WatchedLoopThread: Sendable {
    private struct Watch: Sendable {
        let number: Int
        let name: String
        let threshold: Duration?
        let detach: @Sendable () -> Void
    }

    /// How a thread is polled whose waits are not observable.
    private struct Polling: Sendable {
        let way: String
        let idleCheck: @Sendable () -> Bool?
        let post: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    private struct State: Sendable {
        var watches: [Watch] = []
        var polling: Polling?
        var lastNumber = 0
        /// The number of registrations so far. Only the end of the current one is the end of watching.
        var generation = 0
        /// The name and threshold of the current registration.
        var current: (name: String, threshold: Duration?)?
        var hasEnded = false
    }

    /// The one that the thread's waits are published to.
    let beacon: SharedBeacon
    private let id: ThreadID
    private let target: ThreadTarget
    private weak let monitor: StallMonitor?
    private let state = AgentLocked(State())
    /// Held while the thread is registered as `state` says, so that a later registration is not replaced by an earlier.
    private let registering = AgentLocked(())

    init(
        _ thread: RegisteredThread, _ beacon: SharedBeacon, way: String,
        isWaitingUnseen: (@Sendable (UInt64) -> Bool?)?, monitor: StallMonitor
    ) {
        id = thread.id
        self.beacon = beacon
        self.monitor = monitor
        target = ThreadTarget(
            thread, beacon: beacon, isWaitingUnseen: isWaitingUnseen, modeName: { _ in way })
    }

    var isBypassed: Bool { target.isBypassed }
    func learnTask() { target.learnTask() }

    /// Adds a watch, and returns its number; nil if all have ended. Then call ``register()``.
    func add(as name: String, threshold: Duration?, detach: @escaping @Sendable () -> Void) -> Int?
    {
        state.withLock { state in
            guard !state.hasEnded else { return nil }
            state.lastNumber += 1
            state.watches.append(
                Watch(
                    number: state.lastNumber, name: name, threshold: threshold, detach: detach))
            return state.lastNumber
        }
    }

    /// Ends a watch; the others continue. Idempotent.
    func remove(_ number: Int) {
        let (removed, isLast) = state.withLock { state -> (Watch?, Bool) in
            guard let index = state.watches.firstIndex(where: { $0.number == number }) else {
                return (nil, false)
            }
            let removed = state.watches.remove(at: index)
            state.hasEnded = state.hasEnded || state.watches.isEmpty
            return (removed, state.watches.isEmpty)
        }
        guard let removed else { return }
        if isLast { end() } else { register() }
        removed.detach()
    }

    /// Ends all watches, at the end of the thread for example. Idempotent.
    func end() {
        close(nil)
        guard let monitor, let agent = monitor.agent else { return }
        registering.withLock { _ in
            monitor.unwatch(.loopThread(ObjectIdentifier(self)))
        }
        agent.loopThreads.withLock { if $0[id] === self { $0[id] = nil } }
    }

    func poll(
        way: String, idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> Bool {
        let isNew = state.withLock { state in
            guard state.polling == nil, !state.hasEnded else { return false }
            state.polling = Polling(way: way, idleCheck: idleCheck, post: post)
            state.current = nil
            return true
        }
        if isNew { register() }
        return isNew
    }

    /// Registers the thread as its watches request by now.
    func register() {
        guard let monitor else { return }
        registering.withLock { _ in
            guard let wanted = next(monitor) else { return }
            let key = RegistrationKey.loopThread(ObjectIdentifier(self))
            let detach: @Sendable () -> Void = { [self] in close(wanted.generation) }
            guard let polling = wanted.polling else {
                return monitor.watch(
                    target, LoopBeacon(beacon.pointer), as: wanted.name,
                    threshold: wanted.threshold, key: key, thread: id, detach: detach)
            }
            // The thread's own beacon is not written.
            guard let beacon = SharedBeacon() else { return }
            let polled = PolledTarget(
                .one(id), beacon: beacon, way: polling.way, idleCheck: polling.idleCheck,
                post: polling.post)
            monitor.watchByPolling(
                polled, beacon, as: wanted.name, threshold: wanted.threshold, key: key,
                detach: detach)
        }
    }

    /// A registration: the last watch's name, the shortest threshold.
    private struct Wanted {
        let name: String
        let threshold: Duration?
        let polling: Polling?
        let generation: Int
    }

    /// The registration that is due; nil if the current one is right.
    private func next(_ monitor: StallMonitor) -> Wanted? {
        state.withLock { state in
            guard let last = state.watches.last, !state.hasEnded else { return nil }
            let thresholds = state.watches.map {
                monitor.effectiveThreshold($0.threshold, of: $0.name)
            }
            let threshold = thresholds.count == 1 ? last.threshold : thresholds.min()
            if let current = state.current, current == (last.name, threshold) { return nil }
            state.current = (last.name, threshold)
            state.generation += 1
            return Wanted(
                name: last.name, threshold: threshold, polling: state.polling,
                generation: state.generation)
        }
    }

    /// The registration has ended: by another one of this thread, or with the monitor. Nil: whichever it is.
    private func close(_ generation: Int?) {
        let watches = state.withLock { state -> [Watch] in
            guard generation == nil || state.generation == generation else { return [] }
            defer { state.watches = [] }
            state.hasEnded = true
            return state.watches
        }
        for watch in watches { watch.detach() }
    }
}
