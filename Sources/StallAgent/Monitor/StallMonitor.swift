// The product: connects loops, detector, recorder and store. It decides nothing itself.
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
internal import StallStore
internal import Synchronization

/// Watches run loops and records their stalls. A process needs one.
///
///     let monitor = try StallMonitor.start(.init(app: "photos", version: "2.3.0"))
///     monitor.watch(EventRunLoop.main, as: "main")
///     EventRunLoop.main.run()
///     monitor.stop()
///
/// It runs until ``stop()`` or the end of the process, with or without a reference to it. A failure of the agent (an
/// unwritable store, a full disk, an unreadable stack) loses at most a report or part of one, and is counted; it never
/// affects the app.
///
/// **Thread safety:** every method may be called from any thread.
public final class StallMonitor: Sendable {
    let configuration: Configuration
    let policies: AgentLocked<PolicyResolver>
    /// The address of the running agent. Atomic, because a lock could be held forever in a forked child. The agent of a
    /// parent process is never freed in the child, since the child must not close its store's connection.
    private let running = Atomic<UInt>(0)
    let executor = AgentLocked<StallTaskExecutor?>(nil)
    let expectedScopes = ExpectedScopes()

    /// The parts of a running agent.
    final class Agent: Sendable {
        let watchdog: Watchdog
        let recorder: Recorder
        let sampler: SharedSampler?
        let probeThread = QueueProbeThread()
        let suspicions = SuspicionHooks()
        let controlGroup: ControlGroup
        let watches = RegistrationList()
        /// The threads that other modules watch by their waits.
        let loopThreads = AgentLocked<[ThreadID: WatchedLoopThread]>([:])
        let settings = AgentLocked<SettingsFile?>(nil)
        let systemd = AgentLocked<SystemdNotifier?>(nil)
        let intervals = AgentLocked<[IntervalThread]>([])
        /// The process that started its threads.
        let generation = stall_fork_generation()
        fileprivate let isStopped = Once()
        var hasStopped: Bool { isStopped.isClaimed }
        fileprivate let hasReportedFork = Once()
        fileprivate let hasReportedFlood = Once()

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

    // While the agent runs, the recorder retains the monitor.
    deinit {
        guard let agent = anyAgent, agent.generation == stall_fork_generation() else { return }
        Unmanaged.passUnretained(agent).release()
    }

    /// The agent of this process or of the one that it was forked from; nil if it is disabled or no thread could be
    /// started.
    private var anyAgent: Agent? {
        UnsafeRawPointer(bitPattern: running.load(ordering: .acquiring)).map {
            Unmanaged<Agent>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// The agent of this process. Nil in a forked child, which has none of the agent's threads; that is logged once.
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

    /// Starts an agent: two threads, and a store, which is created if missing.
    ///
    /// The store is opened on the agent's own thread. If that fails, the app runs on, the error is logged once, and
    /// losses are counted until the store is writable.
    ///
    /// - Throws: ``ConfigurationError`` for an invalid configuration; nothing has been started then.
    public static func start(_ configuration: Configuration) throws(ConfigurationError)
        -> StallMonitor
    {
        guard !configuration.app.isEmpty else { throw .emptyAppName }
        guard configuration.threshold >= .milliseconds(20) else {
            throw .thresholdTooShort(configuration.threshold)
        }
        return StallMonitor(
            configuration.environment(processEnvironment(Configuration.variables))
                .inDirectory(currentDirectory()))
    }

    private init(_ given: Configuration) {
        var configuration = given
        configuration.logger = given.logger.untilExit
        self.configuration = configuration
        policies = AgentLocked(PolicyResolver(configuration))
        stall_fork_prepare()
        startAgent(configuration)
    }

    /// Starts the agent in this process, unless it is disabled or no thread can be started.
    private func startAgent(_ configuration: Configuration) {
        guard configuration.isEnabled else { return }
        ChildStart.run(configuration.logger) { [self] logger in
            var configuration = configuration
            configuration.logger = logger
            startThreads(configuration)
        }
    }

    private func startThreads(_ configuration: Configuration) {
        let logger = configuration.logger
        logRefusedCalls(to: logger)
        logUnknownLayouts(to: logger)
        // Reads the time zone, for the default log handler: not only with the first warning, under a filter perhaps.
        tzset()
        guard stall_fork_generation() == 0 || SQLiteLocks.areFree else {
            return logger.error(
                "stalls will not be recorded: a lock of SQLite's was taken at the fork")
        }
        guard let watchdog = Watchdog() else {
            return logger.error("stalls will not be recorded: \(AgentThread.failureText)")
        }
        guard let recorder = Recorder(configuration, watchdog: watchdog, expected: expectedScopes)
        else {
            watchdog.stop()
            return logger.error("stalls will not be recorded: \(AgentThread.failureText)")
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
        // On the recorder's thread, because every step may have to wait for the app.
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
            agent.loopThreads.withLock { $0 = [:] }
            agent.probeThread.stop()
            agent.suspicions.stop()
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
    /// A child has its parent's memory but none of its threads. Until this call the agent watches nothing in the child,
    /// touches neither the parent's store nor its timers, and ``stop()`` returns at once. It watches nothing afterwards
    /// either: watch the child's own loops. Call it after the child has closed the descriptors that it does not need.
    ///
    /// The child records its own run in its own store, since SQLite must not reopen a file that a parent process had
    /// open: `stallwatch.sqlite` becomes `stallwatch-fork1.sqlite`, for all children of the same generation.
    ///
    /// - Parameter store: Another path for the child's store.
    /// - Returns: Whether an agent runs in this process now.
    @discardableResult
    public func restartAfterFork(store: String? = nil) -> Bool {
        let generation = stall_fork_generation()
        if let old = anyAgent, old.generation != generation {
            var configuration = configuration
            configuration.store = store ?? configuration.store.withSuffix("-fork\(generation)")
            startAgent(configuration)
        }
        return anyAgent?.generation == generation
    }

    /// Watches a run loop until the monitor stops. Watching it again changes its name and threshold.
    ///
    /// Call it on the loop's own thread, or on another one; then watching begins when the loop next runs a block.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - name: The target's name in reports.
    ///   - threshold: How long it may be busy; the configuration's threshold if nil. At least 20 ms.
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

    /// The thread registers itself, because only it can determine the bounds of its stack.
    private func watchOnItsThread(_ loop: EventRunLoop, as name: String, threshold: Duration?) {
        let thread = RegisteredThread.current()
        let target = ThreadTarget(
            thread, beacon: SharedBeacon(loop.beacon),
            modeName: { [weak loop] number in loop?.modeName(number: number) })
        let key = RegistrationKey.eventRunLoop(thread.id)
        watch(
            target, LoopBeacon(loop.beacon), as: name, threshold: threshold, key: key,
            thread: thread.id)
        // The thread may also mark work of its own, which is another registration.
        guard let watched = watches[key] else { return }
        ThreadEnd.run(for: self) { [weak self, weak watched] in
            guard let self, let watched else { return }
            if let watch = watches.remove(key, ifItIs: watched) { end(watch) }
        }
    }

    /// The threshold in force for this name, from all sources; never below 20 ms.
    func effectiveThreshold(_ requested: Duration?, of name: String) -> Duration {
        policies.withLock { $0.policies(for: name, requested: requested).base.threshold }
    }

    /// Registers a target, replacing an earlier registration with the same key.
    func watch(
        _ target: any MonitoredTarget, _ beacon: LoopBeacon, as name: String, threshold: Duration?,
        key: RegistrationKey, thread: ThreadID?, detach: @escaping @Sendable () -> Void = {}
    ) {
        guard let agent else { return detach() }
        let policies = policies.withLock { $0.policies(for: name, requested: threshold) }
        let targetMonitor = TargetMonitor(
            name: name, threshold: policies.base.threshold, target: target, beacon: beacon,
            sampler: agent.sampler, controlGroup: agent.controlGroup,
            handover: agent.recorder.handover, threads: configuration.threads,
            suspicions: agent.suspicions.makeCell(for: name))
        let loop = WatchedLoop(
            name: name, beacon: beacon, policies: policies, responder: targetMonitor)
        let watch = Registration(
            loop: loop, name: name, threshold: threshold, thread: thread,
            address: key.queue ?? beacon.address, detach: detach)
        let superseded = watches.insert(watch, for: key)
        if let superseded { end(superseded) }
        guard superseded?.loop !== loop, let refusal = agent.watchdog.watch(loop) else { return }
        if let refused = watches.remove(key, ifItIs: loop) { refused.detach() }
        report(refusal, of: name, agent)
    }

    private func report(_ refusal: Watchdog.Refusal, of name: String, _ agent: Agent) {
        switch refusal {
        case .noRoomInLoop:
            configuration.logger.error(
                "\(name) cannot be watched: \(STALL_WATCHER_LIMIT) monitors watch it already")
        case .tooManyRequests:
            guard agent.hasReportedFlood.claim() else { return }
            configuration.logger.warning(
                "\(name) is not watched: too many watches begin at once; more are only counted")
        }
    }

    /// Ends the registration with this key, if any.
    func unwatch(_ key: RegistrationKey) {
        if let watch = watches.remove(key) { end(watch) }
    }

    private func end(_ watch: Registration) {
        watch.detach()
        agent?.watchdog.unwatch(watch.loop)
    }

    /// Labels the activity of the calling thread's watched loop while `body` runs; reports of stalls in it carry the
    /// label.
    ///
    /// Labels nest; the innermost counts. At most 63 bytes of UTF-8. On a thread without a watched loop only `body`
    /// runs. Cost: one system call and a copy of the label.
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
    ///   - state: `.ended` for one call per stall, when it is over; `.open` for a call while it lasts.
    ///   - body: Called on one of the agent's threads, with a report that is symbolized as far as possible. While it
    ///     runs, later calls are queued; if the queue is full, they are dropped. If it takes longer than
    ///     ``Configuration/callbackDeadline``, it is not called again, and other callbacks continue without it. Both
    ///     are counted and shown by `stallctl status`.
    public func onStall(
        at state: StallState = .ended, _ body: @escaping @Sendable (StallReport) -> Void
    ) {
        agent?.recorder.notifier.add(state: state, body)
    }

    /// Ends open stalls, writes pending reports, closes the store and ends the agent's threads, within ten seconds, or
    /// ``Configuration/callbackDeadline`` plus five if that is longer. ``stop(within:)`` returns whether that was
    /// enough.
    public func stop() {
        _ = stop(within: max(.seconds(10), configuration.callbackDeadline + .seconds(5)))
    }

    /// Ends open stalls, writes pending reports, closes the store and ends the agent's threads.
    ///
    /// Waits for the writes, and for callbacks up to their deadline, but no longer than `limit`: neither a hanging
    /// disk, nor a log handler that waits for this thread, nor a stuck callback prevents the app from ending. The rest
    /// continues on the agent's threads as long as the process lives. This method allocates nothing.
    ///
    /// Later calls wait as well. On the thread of an ``onStall(at:_:)`` callback it returns before that thread has
    /// ended.
    ///
    /// - Parameter limit: The time limit.
    /// - Returns: Whether all pending reports are written and the agent's threads have ended.
    @discardableResult
    public func stop(within limit: Duration) -> Bool {
        // A forked child has nothing to stop.
        guard let agent = anyAgent, agent.generation == stall_fork_generation() else { return true }
        let deadline = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + limit
        begin(agent)
        return agent.recorder.waitForEnd(until: deadline) ?? false
    }

    /// The same in two steps, for several monitors within one limit. Neither allocates.
    func beginStop() {
        if let agent { begin(agent) }
    }

    func waitForEnd(until deadline: MonotonicInstant) -> Bool {
        agent?.recorder.waitForEnd(until: deadline) ?? true
    }

    private func begin(_ agent: Agent) {
        guard agent.isStopped.claim() else { return }
        agent.recorder.notifier.detachIfCurrent()
        agent.watchdog.beginStop()
        agent.recorder.beginStop()
        agent.recorder.detach()
    }
}

/// A flag that only the first caller can claim.
private final class Once: Sendable {
    private let isDone = Atomic<Bool>(false)
    var isClaimed: Bool { isDone.load(ordering: .acquiring) }
    func claim() -> Bool { !isDone.exchange(true, ordering: .acquiringAndReleasing) }
}
