// The product: connects loops to the detector, the detector to the recorder, the recorder to the store. It decides
// nothing itself.
//
//     EventRunLoop -> LoopBeacon -> Watchdog -> TargetMonitor -> HandoverRing -> Recorder -> AgentStore
//     (app's thread)               (watchdog's thread)                        (recorder's thread)

internal import CLinux
internal import Logging
internal import StallCapture
internal import StallCause
internal import StallDetection
public import StallModel
public import StallRunLoop
internal import Synchronization

/// Watches run loops and records their stalls. One is enough for a process.
///
///     let monitor = try StallMonitor.start(.init(app: "photos", version: "2.3.0"))
///     monitor.watch(EventRunLoop.main, as: "main")
///     EventRunLoop.main.run()
///     monitor.stop()
///
/// It runs until ``stop()`` or the end of the process; nothing depends on keeping a reference. Whatever fails in
/// it (an unwritable store, a full disk, a stack that cannot be read) becomes a report with less in it or a counted
/// loss, never a fault of the app.
///
/// **Thread safety:** every method may be called from any thread.
public final class StallMonitor: Sendable {
    let configuration: Configuration
    let policies: Mutex<PolicyResolver>
    /// The address of the running agent. Without a lock: it could be held for ever in a forked child. An agent of a
    /// parent is never freed in the child, since its store's connection must not be closed there.
    private let running = Atomic<UInt>(0)

    /// What a running agent consists of.
    final class Agent: Sendable {
        let watchdog: Watchdog
        let recorder: Recorder
        let sampler: SharedSampler?
        let probeThread = QueueProbeThread()
        let controlGroup: ControlGroup
        let watches = RegistrationList()
        let settings = Mutex<SettingsFile?>(nil)
        let systemd = Mutex<SystemdNotifier?>(nil)
        let intervals = Mutex<[IntervalThread]>([])
        /// The process that its threads are of.
        let generation = stall_fork_generation()
        fileprivate let isStopped = Once()
        fileprivate let hasReportedFork = Once()

        fileprivate init(
            watchdog: Watchdog, recorder: Recorder, sampler: SharedSampler?,
            controlGroup: ControlGroup
        ) {
            self.watchdog = watchdog
            self.recorder = recorder
            self.sampler = sampler
            self.controlGroup = controlGroup
        }
    }

    // While it runs the recorder keeps the monitor alive.
    deinit {
        guard let agent = anyAgent, agent.generation == stall_fork_generation() else { return }
        Unmanaged.passUnretained(agent).release()
    }

    /// The agent of this process or of the one that it was forked from; nil when it is disabled or the system had no
    /// threads.
    private var anyAgent: Agent? {
        UnsafeRawPointer(bitPattern: running.load(ordering: .acquiring)).map {
            Unmanaged<Agent>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// The agent of this process. Nil in a forked child, which has none of the agent's threads: it is told once.
    var agent: Agent? {
        guard let agent = anyAgent else { return nil }
        if agent.generation == stall_fork_generation() { return agent }
        if agent.hasReportedFork.claim() {
            configuration.logger.error(
                "this process was forked, and the agent's threads were not: call restartAfterFork()"
            )
        }
        return nil
    }

    var watches: RegistrationList { anyAgent?.watches ?? noWatches }
    private let noWatches = RegistrationList()

    /// Starts an agent: two threads, and a store that is created when it is missing.
    ///
    /// The store is opened on the agent's own thread. When it cannot be, the app runs on, the logger hears of it once,
    /// and losses are counted until the store can be written.
    ///
    /// - Throws: ``ConfigurationError`` for a configuration that makes no sense; nothing has started then.
    public static func start(_ configuration: Configuration) throws(ConfigurationError)
        -> StallMonitor
    {
        guard !configuration.app.isEmpty else { throw .emptyAppName }
        guard configuration.threshold >= .milliseconds(20) else {
            throw .thresholdTooShort(configuration.threshold)
        }
        let monitor = StallMonitor(
            configuration.environment(processEnvironment(Configuration.variables))
                .inDirectory(currentDirectory()))
        if monitor.agent != nil { ProcessExit.stop(monitor) }
        return monitor
    }

    private init(_ configuration: Configuration) {
        self.configuration = configuration
        policies = Mutex(PolicyResolver(configuration))
        stall_fork_prepare()
        startAgent(configuration)
    }

    /// Starts the agent in this process, unless it is disabled or there are no threads.
    private func startAgent(_ configuration: Configuration) {
        guard configuration.isEnabled else { return }
        let logger = configuration.logger
        guard let watchdog = Watchdog() else {
            return logger.error("stalls will not be recorded: \(AgentThread.whatFailed)")
        }
        guard let recorder = Recorder(configuration, watchdog: watchdog) else {
            watchdog.stop()
            return logger.error("stalls will not be recorded: \(AgentThread.whatFailed)")
        }
        var sampler: SharedSampler?
        let controlGroup = ControlGroup()
        do { sampler = try SharedSampler(controlGroup) } catch {
            logger.error("stacks cannot be captured: \(error)")
        }
        let agent = Agent(
            watchdog: watchdog, recorder: recorder, sampler: sampler, controlGroup: controlGroup)
        running.store(
            UInt(bitPattern: Unmanaged.passRetained(agent).toOpaque()), ordering: .releasing)
        // Run by the recorder's thread: all of it may have to wait for the app.
        recorder.end.prepare { [self] in
            ProcessExit.forget(self)
            agent.settings.withLock { $0.take() }?.stop()
            agent.systemd.withLock { $0.take() }?.stop()
            let intervals = agent.intervals.withLock { intervals in
                defer { intervals = [] }
                return intervals
            }
            for interval in intervals { interval.stop() }
            TaskJobs.end(for: self)
            for watch in agent.watches.close() { watch.detach() }
            agent.probeThread.stop()
            watchdog.join()
        }
        ProcessExit.stop(self)
        guard let path = configuration.settings else { return }
        let file = SettingsFile(path: path, logger: logger) { [weak self] settings in
            self?.apply(settings)
        }
        agent.settings.withLock { $0 = file }
    }

    /// Starts the agent again in a child that was forked without `exec`: a daemon, a worker of a pre-fork server.
    ///
    /// A child has the memory of its parent and none of its threads. Until this is called the agent watches nothing in
    /// it, touches neither the parent's store nor its timers, and ``stop()`` returns at once. Nothing is watched
    /// afterwards either: watch what the child runs. Call it when the child has closed the descriptors that it does not
    /// want.
    ///
    /// The child writes a run of its own into a store of its own, since SQLite must not open again what a parent had
    /// open: `stallwatch.sqlite` becomes `stallwatch-fork1.sqlite`, for all children of the same generation.
    ///
    /// - Parameter store: Another file for it.
    /// - Returns: Whether an agent runs in this process now.
    @discardableResult
    public func restartAfterFork(store: String? = nil) -> Bool {
        let generation = stall_fork_generation()
        if let old = anyAgent, old.generation != generation {
            var configuration = configuration
            configuration.store = store ?? configuration.store.withMark("-fork\(generation)")
            startAgent(configuration)
        }
        return anyAgent?.generation == generation
    }

    /// Watches a run loop until the monitor stops. Watching it again changes its name and threshold.
    ///
    /// Call it on the loop's own thread, or from another one; then watching begins when the loop next runs a block.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - name: What reports call it.
    ///   - threshold: How long it may be busy; the configuration's threshold when nil. At least 20 ms.
    public func watch(_ loop: EventRunLoop, as name: String, threshold: Duration? = nil) {
        guard agent != nil else { return }
        if loop.isCurrent {
            watchOnItsThread(loop, as: name, threshold: threshold)
        } else {
            loop.post(inMode: .common) { [self] in
                watchOnItsThread(.current, as: name, threshold: threshold)
            }
        }
    }

    /// The thread registers itself: only it can tell where its stack ends.
    private func watchOnItsThread(_ loop: EventRunLoop, as name: String, threshold: Duration?) {
        let thread = RegisteredThread.current()
        let target = ThreadTarget(
            thread, beacon: SharedBeacon(loop.beacon),
            modeName: { [weak loop] number in loop?.modeName(number: number) })
        let key = RegistrationKey.eventRunLoop(thread.id)
        watch(
            target, LoopBeacon(loop.beacon), as: name, threshold: threshold, key: key,
            thread: thread.id)
        // The thread may mark work of its own as well: that is another watch.
        guard let watched = watches[key] else { return }
        ThreadEnd.run(for: self) { [weak self, weak watched] in
            guard let self, let watched else { return }
            if let watch = watches.remove(key, ifItIs: watched) { end(watch) }
        }
    }

    /// The threshold that counts now, by all that was said of loops of this name; never below 20 ms.
    func effectiveThreshold(_ asked: Duration?, of name: String) -> Duration {
        policies.withLock { $0.policies(for: name, asked: asked).base.threshold }
    }

    /// Registers a target, instead of an earlier registration with the same key.
    func watch(
        _ target: any MonitoredTarget, _ beacon: LoopBeacon, as name: String, threshold: Duration?,
        key: RegistrationKey, thread: ThreadID?, detach: @escaping @Sendable () -> Void = {}
    ) {
        guard let agent else { return detach() }
        let policies = policies.withLock { $0.policies(for: name, asked: threshold) }
        let targetMonitor = TargetMonitor(
            name: name, threshold: policies.base.threshold, target: target, beacon: beacon,
            sampler: agent.sampler, controlGroup: agent.controlGroup,
            handover: agent.recorder.handover, threads: configuration.threads)
        let loop = WatchedLoop(
            name: name, beacon: beacon, policies: policies, responder: targetMonitor)
        let watch = Registration(
            loop: loop, name: name, threshold: threshold, thread: thread, detach: detach)
        let superseded = watches.insert(watch, for: key)
        if let superseded { end(superseded) }
        if superseded?.loop !== loop { agent.watchdog.watch(loop) }
    }

    /// Ends the watch with this key, if there is one.
    func unwatch(_ key: RegistrationKey) {
        if let watch = watches.remove(key) { end(watch) }
    }

    private func end(_ watch: Registration) {
        watch.detach()
        agent?.watchdog.unwatch(watch.loop)
    }

    /// Labels what the calling thread's watched loop does while `body` runs: reports of stalls in it carry the label.
    ///
    /// Labels nest; the innermost counts. At most 63 bytes of UTF-8 are kept. On a thread whose loop is not watched
    /// only `body` runs. Cost: one system call and a copy of the label.
    @discardableResult
    public func withActivity<Result, Failure: Error>(
        _ label: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let thread = ThreadID(rawValue: stall_gettid())
        let labelled = watches.beacons(of: thread).map { ($0, outer: $0.label) }
        for (beacon, _) in labelled { beacon.writeLabel(label) }
        defer { for (beacon, outer) in labelled { beacon.writeLabel(outer) } }
        return try body()
    }

    /// Calls `body` for every stall whose report has become durable.
    ///
    /// - Parameters:
    ///   - state: `.ended` to hear of each stall once, when it is over; `.open` to hear while it lasts.
    ///   - body: Called on a thread of the agent's own, with a report whose samples are symbolized as far as they can
    ///     be. While it runs, later calls wait; when too many wait, they are dropped. When it takes longer than
    ///     ``Configuration/callbackDeadline``, it is not called again, and the others go on without it. Both are counted,
    ///     and `stallctl status` says how often.
    public func onStall(
        at state: StallState = .ended, _ body: @escaping @Sendable (StallReport) -> Void
    ) {
        agent?.recorder.notifier.add(state: state, body)
    }

    /// Ends stalls that are open, writes what is waiting, closes the store and ends the agent's threads, within ten
    /// seconds, or five more than ``Configuration/callbackDeadline`` when that is longer. ``stop(within:)`` says
    /// whether that was enough.
    public func stop() {
        _ = stop(within: max(.seconds(10), configuration.callbackDeadline + .seconds(5)))
    }

    /// Ends stalls that are open, writes what is waiting, closes the store and ends the agent's threads.
    ///
    /// Waits for the writes, and for callbacks up to their deadline, but no longer than it may: a disk that hangs, a
    /// log handler that waits for this thread, or a callback that is stuck does not keep the app from ending. What is
    /// not done by then goes on on the agent's threads, as far as the process lives. Nothing is allocated here.
    ///
    /// Calls after the first wait as well. On the thread of an ``onStall(at:_:)`` callback it returns before that
    /// thread has ended.
    ///
    /// - Parameter limit: How long it may take.
    /// - Returns: Whether everything that was waiting is written and the agent's threads have ended.
    @discardableResult
    public func stop(within limit: Duration) -> Bool {
        // In a forked child there is nothing of its own to stop.
        guard let agent = anyAgent, agent.generation == stall_fork_generation() else { return true }
        let deadline = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + limit
        if agent.isStopped.claim() {
            agent.recorder.notifier.leaveIfCurrent()
            agent.watchdog.beginStop()
            agent.recorder.beginStop()
            agent.recorder.detach()
        }
        return agent.recorder.waitForEnd(until: deadline) ?? false
    }
}

/// Something that is done once, by the first that comes.
private final class Once: Sendable {
    private let isDone = Atomic<Bool>(false)
    func claim() -> Bool { !isDone.exchange(true, ordering: .acquiringAndReleasing) }
}
