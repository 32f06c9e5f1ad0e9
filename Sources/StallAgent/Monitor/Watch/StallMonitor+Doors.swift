// Targets of other modules of the package: a thread whose waits they intercept (StallDoor), a loop that can only be
// polled (StallAgentNIO).

package import CLinux
internal import Logging
internal import StallCapture
internal import StallDetection
package import StallModel
internal import Synchronization

/// A watch that another module of the package requested.
package final class ExternalWatch: Sendable {
    private let end: @Sendable () -> Void

    fileprivate init(_ end: @escaping @Sendable () -> Void) { self.end = end }

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
        let outside = ExternalWatch { [weak self] in self?.unwatch(key) }
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

/// A thread that is polled from outside, or a pool of threads.
private final class PolledTarget: MonitoredTarget, ProbeTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches `known`.
    enum Threads: Sendable {
        case one(ThreadID)
        case named(StaticString)
    }
    private let threads: Threads
    private let beacon: SharedBeacon
    private let way: String
    private let idleCheck: @Sendable () -> Bool?
    private let postProbe: @Sendable (@escaping @Sendable () -> Void) -> Void
    private var known: RegisteredThread?
    /// The number of consecutive polls that found it busy.
    private let busyPolls = Atomic<Int>(0)

    init(
        _ threads: Threads, beacon: SharedBeacon, way: String,
        idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.threads = threads
        self.beacon = beacon
        self.way = way
        self.idleCheck = idleCheck
        postProbe = post
    }

    /// A single poll may find any loop busy, and a probe wakes an idle loop. So only a loop that is busy at two
    /// consecutive polls gets a probe.
    func poll() -> ProbeResult? {
        guard let isIdle = idleCheck() else { return nil }
        if isIdle {
            busyPolls.store(0, ordering: .relaxed)
            return .idle
        }
        return busyPolls.add(1, ordering: .relaxed).newValue > 1 ? .working(head: 0) : .idle
    }

    var mustAnswerFirst: Bool { false }
    func post(_ probe: @escaping @Sendable () -> Void) { postProbe(probe) }

    func findThread() -> RegisteredThread? {
        let ready = memberWithoutCPU
        if ready == nil, let known, !known.hasEnded { return known }
        switch threads {
        case .one(let id): known = try? RegisteredThread.found(id)
        case .named: known = ready ?? firstMember
        }
        if let known { stall_beacon_publish_thread(beacon.pointer, known.id.rawValue) }
        return known
    }

    /// `forEachMember` visits in order of thread id.
    private var firstMember: RegisteredThread? {
        var first: RegisteredThread?
        forEachMember { if first == nil { first = $0 } }
        return first
    }

    /// A thread of a pool that is runnable without a CPU while work waits: it may be about to start that work, while
    /// the others are idle.
    private var memberWithoutCPU: RegisteredThread? {
        guard case .named = threads, LoopBeacon(beacon.pointer).isBusy else { return nil }
        var found: RegisteredThread?
        forEachMember { thread in
            guard found == nil else { return }
            var probe = ThreadStatReader(thread.id)
            if probe.scheduling().waitsForCPU { found = thread }
        }
        return found
    }

    func forEachMember(_ body: (RegisteredThread) -> Void) {
        guard case .named(let text) = threads else { return }
        StackSampler.forEachThread { id in
            guard isThread(id, withNameHolding: text) else { return }
            if let thread = try? RegisteredThread.found(id) { body(thread) }
        }
    }

    func modeName(_ number: UInt32) -> String? { way }

    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        if case .one = threads, known?.hasEnded == true {
            beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now)
        }
        return true
    }
}
