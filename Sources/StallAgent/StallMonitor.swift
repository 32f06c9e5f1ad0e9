// The product: connects loops to the detector, the detector to the recorder, the recorder to the store. It decides
// nothing itself.
//
//     EventRunLoop -> LoopBeacon -> Watchdog -> LoopWitness -> BoundedQueue -> Recorder -> AgentStore
//     (app's thread)               (watchdog's thread)                        (recorder's thread)

internal import CLinux
internal import Foundation
internal import Logging
internal import StallCapture
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
/// It goes on until ``stop()`` or the end of the process; nothing depends on keeping a reference. Whatever fails in
/// it (an unwritable store, a full disk, a stack that cannot be read) becomes a report with less in it or a counted
/// loss, never a fault of the app.
///
/// **Thread safety:** every method may be called from any thread.
public final class StallMonitor: Sendable {
    private let configuration: Configuration
    /// Nil when the agent is disabled or the system has no threads to give.
    private let agent: Agent?
    private let watched: Mutex<WatchList>
    private let settings = Mutex<SettingsFile?>(nil)

    /// What a running agent consists of.
    private struct Agent: Sendable {
        let watchdog: Watchdog
        let recorder: Recorder
        let sampler: SharedSampler?
        let controlGroup = ControlGroupProbe()
        let isStopped = Once()
    }

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
        return StallMonitor(configuration.environment(ProcessInfo.processInfo.environment))
    }

    private init(_ configuration: Configuration) {
        self.configuration = configuration
        watched = Mutex(WatchList(configuration))
        guard configuration.isEnabled, let recorder = Recorder(configuration),
            let watchdog = Watchdog()
        else {
            agent = nil
            if configuration.isEnabled {
                configuration.logger.error("no thread for the agent; stalls will not be recorded")
            }
            return
        }
        var sampler: SharedSampler?
        do { sampler = try SharedSampler() } catch {
            configuration.logger.error("stacks cannot be captured: \(error)")
        }
        agent = Agent(watchdog: watchdog, recorder: recorder, sampler: sampler)
        guard let path = configuration.settings else { return }
        let file = SettingsFile(path: path, logger: configuration.logger) { [weak self] settings in
            self?.apply(settings)
        }
        settings.withLock { $0 = file }
    }

    /// Judges the loops that are watched under a name by another policy, from now on and whenever one is watched under it.
    /// What an operator's settings file says of them still goes first.
    public func setPolicy(_ policy: StallPolicy, for name: String) {
        watched.withLock { $0.change(policy, of: name) }
        updatePolicies()
    }

    /// Changes the threshold of the loops that are watched under a name; the rest of their policy stays. At least 20 ms.
    public func setThreshold(_ threshold: Duration, for name: String) {
        watched.withLock { watched in
            var policy = watched.policy(of: name)
            policy.threshold = max(threshold, .milliseconds(20))
            watched.change(policy, of: name)
        }
        updatePolicies()
    }

    private func apply(_ settings: AgentSettings) {
        watched.withLock { $0.apply(settings) }
        let debuggerPolicy = settings.debugger.flatMap(DebuggerPolicy.init(rawValue:))
        agent?.recorder.limit(
            settings.limits(over: configuration.limits),
            debuggerPolicy ?? configuration.debuggerPolicy)
        updatePolicies()
    }

    private func updatePolicies() {
        watched.withLock { watched in
            for entry in watched.entries.values {
                agent?.watchdog.setPolicies(
                    watched.policies(for: entry.name, threshold: entry.threshold), of: entry.loop)
            }
        }
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
        guard let agent else { return }
        let thread: RegisteredThread
        do { thread = try .current() } catch {
            return configuration.logger.error("\(name) cannot be watched: \(error)")
        }
        let beacon = LoopBeacon(loop.beacon)
        let policies = watched.withLock { $0.policies(for: name, threshold: threshold) }
        let witness = LoopWitness(
            name: name, threshold: policies.base.threshold, thread: thread, sampler: agent.sampler,
            controlGroup: agent.controlGroup,
            modeName: { [weak loop] number in loop?.modeName(number: number) },
            queue: agent.recorder.queue)
        let watchedLoop = WatchedLoop(beacon: beacon, policies: policies, responder: witness)
        let entry = WatchList.Entry(loop: watchedLoop, name: name, threshold: threshold)
        let earlier = watched.withLock { $0.add(entry, on: thread.id) }
        if let earlier { agent.watchdog.unwatch(earlier) }
        agent.watchdog.watch(watchedLoop)
        ThreadEnd.run { [weak self] in
            self?.watched.withLock { $0.remove(thread.id, watchedLoop) }
            agent.watchdog.unwatch(watchedLoop)
        }
    }

    /// Labels what the calling thread's watched loop does while `body` runs: reports of stalls in it carry the label.
    ///
    /// Labels nest; the innermost counts. At most 63 bytes of UTF-8 are kept. On a thread whose loop is not watched
    /// only `body` runs. Cost: one system call and a copy of the label.
    public func withActivity<Result, Failure: Error>(
        _ label: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let thread = ThreadID(rawValue: stall_gettid())
        guard let beacon = watched.withLock({ $0.entries[thread]?.loop.beacon }) else { return try body() }
        let outer = beacon.label
        beacon.writeLabel(label)
        defer { beacon.writeLabel(outer) }
        return try body()
    }

    /// Calls `body` for every stall whose report has become durable.
    ///
    /// - Parameters:
    ///   - state: `.ended` to hear of each stall once, when it is over; `.open` to hear while it lasts.
    ///   - body: Called on a thread of the agent's own, with a report whose samples are symbolized as far as they can
    ///     be. While it runs, later calls wait; when too many wait, they are dropped.
    public func onStall(
        at state: StallState = .ended, _ body: @escaping @Sendable (StallReport) -> Void
    ) {
        agent?.recorder.notifier.add(state: state, body)
    }

    /// Ends stalls that are open, writes what is waiting, closes the store and ends the agent's threads.
    ///
    /// Waits for the writes. Calls after the first do nothing. On the thread of an ``onStall(at:_:)`` callback it
    /// returns before that thread has ended.
    public func stop() {
        guard let agent, agent.isStopped.claim() else { return }
        settings.withLock { $0.take() }?.stop()
        agent.watchdog.stop()
        agent.recorder.stop()
    }
}

/// Something that is done by whoever comes first.
private final class Once: Sendable {
    private let isDone = Atomic<Bool>(false)
    func claim() -> Bool { !isDone.exchange(true, ordering: .acquiringAndReleasing) }
}
