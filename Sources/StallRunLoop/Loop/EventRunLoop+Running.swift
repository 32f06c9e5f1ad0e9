// Runs and their iterations. A run holds the loop's lock, except around callouts and in the kernel.

internal import CLinux
internal import Glibc
public import StallModel

extension EventRunLoop {
    /// Runs in the default mode until `stop()`, or until the mode has no source or timer left.
    public func run() {
        while true {
            let result = run(.default, deadline: .max, returnAfterSourceHandled: false)
            if result == .stopped || result == .finished { return }
        }
    }

    /// Runs in the default mode until `instant`, or until the mode has no source or timer left. `stop()` ends
    /// only the run that it meets; this continues with the next one, as Foundation's `RunLoop.run(until:)` does.
    public func run(until instant: MonotonicInstant) {
        while run(.default, deadline: instant.nanoseconds, returnAfterSourceHandled: false)
            != .finished,
            stall_monotonic_ns() < instant.nanoseconds
        {}
    }

    /// Runs in the default mode until `instant`, or until the mode has no source or timer left.
    public func run(until instant: ContinuousClock.Instant) {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        run(until: now + (instant - ContinuousClock.now))
    }

    /// Runs once, in one mode.
    ///
    /// - Parameters:
    ///   - mode: The mode; not ``LoopMode/common``, which finishes at once.
    ///   - duration: For how long; zero or less polls: one iteration that does not sleep. Nil means without end.
    ///   - returnAfterSourceHandled: Whether to return once a source, a descriptor or the main queue was served.
    /// - Returns: Why it ended. When several reasons hold at the end of an iteration: a handled source, then
    ///   the time, then `stop()`, then an empty mode.
    @discardableResult
    public func run(
        mode: LoopMode = .default, for duration: Duration? = nil,
        returnAfterSourceHandled: Bool = false
    ) -> LoopRunResult {
        guard let duration else {
            return run(mode, deadline: .max, returnAfterSourceHandled: returnAfterSourceHandled)
        }
        guard duration > .zero else {
            return run(mode, deadline: 0, returnAfterSourceHandled: returnAfterSourceHandled)
        }
        let deadline = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + duration
        return run(
            mode, deadline: deadline.nanoseconds, returnAfterSourceHandled: returnAfterSourceHandled
        )
    }

    /// One run with its entry and exit. `deadline` 0 polls once, the largest number never ends.
    private func run(
        _ mode: LoopMode, deadline: UInt64, returnAfterSourceHandled: Bool
    ) -> LoopRunResult {
        guard isCurrent else { fatalError("a run loop can be run only by its own thread") }
        guard mode != .common else { return .finished }
        lock.lock()
        guard let items = itemsToRun(mode), !isEmpty(items) else {
            takeEmbeddedEvents(mode)
            lock.unlock()
            return .finished
        }
        let outer = beginRun(items)
        observe(.entry, in: items)
        let result = iterate(
            items, deadline: deadline, returnAfterSourceHandled: returnAfterSourceHandled)
        observe(.exit, in: items)
        endRun(restoring: outer)
        lock.unlock()
        return result
    }

    /// The items of a mode. One that nothing was ever handed to does not come to exist by a run.
    private func itemsToRun(_ mode: LoopMode) -> ModeItems? {
        if let items = items(of: mode) { return items }
        let isCommon = commonModes.contains(mode)
        guard isCommon || blocks.holdsBlock(for: mode, isCommon: isCommon) else { return nil }
        return itemsToAdd(to: mode)
    }

    /// The state of the run that a nested run replaces.
    private struct OuterRun {
        var items: ModeItems?
        var isStopRequested: Bool
        var ignoresWakeUps: Bool
        var tookWakeUp: Bool
        var phase: LoopPhase
        /// The beacon of what the thread did before.
        var current: UnsafeMutablePointer<stall_beacon>?
    }

    private func beginRun(_ items: ModeItems) -> OuterRun {
        let outer = OuterRun(
            items: running, isStopRequested: isStopRequested, ignoresWakeUps: ignoresWakeUps,
            tookWakeUp: tookWakeUp, phase: phase, current: stall_current_enter(beacon))
        running = items
        runDepth += 1
        isStopRequested = false
        tookWakeUp = false
        acceptWakeUps()
        stall_beacon_publish_thread(beacon, thread.rawValue)
        stall_beacon_publish_mode(beacon, items.mode.number)
        publish(.unknown)
        readClock()
        stall_beacon_publish_awake(beacon, now)
        watchMainQueue(in: items)
        return outer
    }

    private func endRun(restoring outer: OuterRun) {
        let ran = running
        running = outer.items
        runDepth -= 1
        isStopRequested = outer.isStopRequested
        readClock()
        if let items = outer.items {
            let isWoken = wake.isWoken
            wake.restore(isWoken: tookWakeUp || isWoken)
            // A wake-up that counted, and that the nested run did not take, counts for the outer one wherever it is.
            ignoresWakeUps = outer.ignoresWakeUps && (ignoresWakeUps || !isWoken)
            tookWakeUp = outer.tookWakeUp || tookWakeUp || isWoken
            stall_beacon_publish_mode(beacon, items.mode.number)
            publish(outer.phase)
            stall_beacon_publish_awake(beacon, now)
            watchMainQueue(in: items)
        } else {
            let wasWoken = wake.reset()
            if !embeddedItems.isEmpty {
                armForEmbedding()
                if let ran { tellEmbedder(of: ran, wasWoken: wasWoken) }
            }
            ignoresWakeUps = true
            publish(.unknown)
            stall_beacon_publish(beacon, UInt8(STALL_LOOP_IDLE), now)
        }
        stall_current_restore(outer.current)
    }

    private func iterate(
        _ items: ModeItems, deadline: UInt64, returnAfterSourceHandled: Bool
    ) -> LoopRunResult {
        if takeStop() { return .stopped }
        var servedMainQueue = true
        while true {
            acceptWakeUps()
            refreshClock()
            stall_beacon_publish_iteration(beacon, now)
            observe(.beforeTimers, in: items)
            observe(.beforeSources, in: items)
            drainBlocks(in: items)
            var handled = serveSources(in: items, onlyOne: returnAfterSourceHandled)
            if handled { drainBlocks(in: items) }

            // One event per iteration comes next: the queue's turn first, unless it had the last one.
            let event: LoopEvent
            // Of timers and the set, which take turns: the queue's turn here is neither's.
            var timersHadTurn: Bool?
            if !servedMainQueue && isMainQueueReady(items) {
                event = .mainQueue
                timersHadTurn = servedTimersLast
            } else if !handled && isTimersTurn(items) {
                // Without reading the kernel's events: none of them comes before these.
                ignoresWakeUps = true
                isSetQuiet = false
                servedMainQueue = false
                servedTimersLast = true
                fireTimers(in: items)
                drainBlocks(in: items)
                if let result = resultOfTurn(items, deadline) { return result }
                continue
            } else if handled || deadline == 0 {
                event = poll(items)
            } else {
                if items.observerMask.contains(.beforeWaiting) { isSetQuiet = false }
                observe(.beforeWaiting, in: items)
                event = wait(in: items, until: deadline)
                ignoresWakeUps = true
                observe(.afterWaiting, in: items)
            }
            ignoresWakeUps = true
            isSetQuiet = false
            servedMainQueue = event.isMainQueue
            if serve(event, in: items) { handled = true }
            if let timersHadTurn { servedTimersLast = timersHadTurn }
            drainBlocks(in: items)

            if handled && returnAfterSourceHandled { return .handledSource }
            if let result = resultOfTurn(items, deadline) { return result }
        }
    }

    /// Why the run ends behind an iteration; nil when it continues.
    @inline(__always) private func resultOfTurn(
        _ items: ModeItems, _ deadline: UInt64
    ) -> LoopRunResult? {
        if deadline != .max {
            if deadline != 0 { refreshClock() }
            if deadline <= now { return .timedOut }
        }
        if takeStop() { return .stopped }
        return isEmpty(items) ? .finished : nil
    }

    /// Timers that are due so soon may be due by now: the clock is looked at again.
    private static var nearby: UInt64 { 10_000 }

    /// Whether due timers are what a wait or a poll of this iteration would find. No observer sees the wait, and the
    /// set, if it has anything, has had the last turn.
    @inline(__always) private func isTimersTurn(_ items: ModeItems) -> Bool {
        guard items.observerMask.isDisjoint(with: [.beforeWaiting, .afterWaiting]),
            !servedTimersLast || !items.needsPolling || isSetQuiet, !wake.isEmbedded,
            forkGeneration == stall_fork_generation()
        else { return false }
        refreshClock()
        let deadline = items.timers.pointee.wakeDeadline()
        if deadline > now && deadline &- now < Self.nearby { readClock() }
        guard deadline <= now else { return false }
        if wake.takePending() { tookWakeUp = true }
        return true
    }

    /// Whether the main queue has work. The same system call shows whether the set has anything to report, and spares another one
    /// if it has not.
    private func isMainQueueReady(_ items: ModeItems) -> Bool {
        guard mainQueueDescriptor >= 0, let epoll = items.setWithMainQueue else { return false }
        let ready = stall_descriptors_are_readable(mainQueueDescriptor, epoll)
        isSetQuiet = ready == 0 && epoll >= 0
        return ready & 1 != 0
    }

    /// No source, timer or block that the mode allows. The main loop always has the main queue, in a common mode and
    /// outside of the queue's own blocks.
    private func isEmpty(_ items: ModeItems) -> Bool {
        guard items.isEmpty else { return false }
        if (mainQueueDescriptor >= 0 || lacksMainQueue) && items.isCommon && !isInMainQueue {
            return false
        }
        return !blocks.mayHoldBlock(for: items.mode, isCommon: items.isCommon)
            || !blocks.holdsBlock(for: items.mode, isCommon: items.isCommon)
    }

    /// Wake-ups count from here on; those that came while they did not are dropped.
    @inline(__always) private func acceptWakeUps() {
        guard ignoresWakeUps else { return }
        ignoresWakeUps = false
        wake.dropMarks()
    }

    private func takeStop() -> Bool {
        defer { isStopRequested = false }
        return isStopRequested
    }

    func readClock() {
        now = stall_monotonic_ns()
        isNowStale = false
    }

    /// Reads the clock if a callout has run since the last reading: one reading serves a whole quiet iteration.
    @inline(__always) func refreshClock() {
        if isNowStale { readClock() }
    }

    /// Serves the main queue in this run, or not. Not inside of a block of that queue: it would be drained twice.
    func watchMainQueue(in items: ModeItems) {
        guard mainQueueDescriptor >= 0 else { return }
        items.watchMainQueue(items.isCommon && !isInMainQueue, of: self)
    }
}
