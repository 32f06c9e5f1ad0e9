// Everything that runs the app's code. Each callout lets go of the lock, and says in the beacon what it is.

internal import CLinux
internal import StallModel
internal import Synchronization

extension EventRunLoop {
    /// Publishes what runs now, between callouts or in one.
    @inline(__always) func publish(_ phase: LoopPhase) {
        self.phase = phase
        stall_beacon_publish_callout(beacon, phase.rawValue)
    }

    /// Runs the app's code without the lock. Every nested run puts `phase` back before it returns into its callout.
    @inline(__always) private func callOut(_ phase: LoopPhase, _ body: () -> Void) {
        publish(phase)
        body()
        isNowStale = true
        publish(.unknown)
    }

    /// Calls the observers of an activity: those that are in the mode now and valid when their turn comes.
    @inline(__always) func observe(_ activity: LoopActivity, in items: ModeItems) {
        if items.observerMask.contains(activity) { callObservers(activity, in: items) }
    }

    @inline(never) private func callObservers(_ activity: LoopActivity, in items: ModeItems) {
        let observers = items.observers.filter {
            $0.activities.contains(activity) && $0.isValid && !$0.isFiring
        }
        lock.unlock()
        for observer in observers where observer.isValid {
            observer.isFiring = true
            callOut(.observer) { observer.handler(observer, activity) }
            if !observer.repeats { observer.invalidate() }
            observer.isFiring = false
        }
        lock.lock()
    }

    /// Runs the blocks that were there when it began and that the mode allows.
    @inline(__always) func drainBlocks(in items: ModeItems) {
        if !blocks.isEmpty { runBlocks(in: items) }
    }

    @inline(never) private func runBlocks(in items: ModeItems) {
        let isCommon = items.isCommon
        lock.unlock()
        var batch = blocks.takeAll()
        var kept = BlockQueue.Batch()
        while let body = blocks.next(in: &batch, mode: items.mode, isCommon: isCommon, kept: &kept)
        {
            callOut(.block, body)
        }
        blocks.putBack(kept)
        lock.lock()
    }

    func dropBlocks() {
        var batch = blocks.takeAll()
        while let body = blocks.nextOfAny(in: &batch) { _ = body }
    }

    /// Serves the signalled sources of the mode, by order and then by the time of their signal; with `onlyOne`,
    /// the first of them.
    func serveSources(in items: ModeItems, onlyOne: Bool) -> Bool {
        let signalled = items.sources.filter { $0.isSignalled }
        guard !signalled.isEmpty else { return false }
        lock.unlock()
        defer { lock.lock() }
        let ordered =
            signalled.count == 1
            ? signalled
            : signalled.map { ($0.order, $0.signalTicket.load(ordering: .relaxed), $0) }
                .sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
        var handled = false
        for source in ordered where source.takeSignal() && source.isValid {
            callOut(.source) { source.handler(source) }
            handled = true
            if onlyOne { break }
        }
        return handled
    }

    /// Serves one event. Returns whether it counts as a handled source: a timer does not.
    func serve(_ event: LoopEvent, in items: ModeItems) -> Bool {
        servedTimersLast = false
        switch event {
        case .none: return false
        case .timers:
            servedTimersLast = true
            fireTimers(in: items)
            return false
        case .mainQueue: return serveMainQueue(in: items)
        case .descriptor(let source, let events): return serve(source, events)
        case .descriptors(let batch):
            var handled = false
            for ready in batch {
                // An earlier handler of the batch may have removed this one.
                guard case .descriptor(let source, let events)? = items.poller?.resolve(ready)
                else { continue }
                if serve(source, events) { handled = true }
            }
            return handled
        }
    }

    private func serve(_ source: DescriptorSource, _ events: DescriptorEvents) -> Bool {
        guard source.isValid else { return false }
        lock.unlock()
        callOut(.descriptor) { source.handler(source, events) }
        lock.lock()
        return true
    }

    private func serveMainQueue(in items: ModeItems) -> Bool {
        lock.unlock()
        _ = stall_eventfd_take(mainQueueDescriptor)
        isInMainQueue = true
        callOut(.mainQueue) { stall_main_queue_drain() }
        isInMainQueue = false
        lock.lock()
        // A nested run of a block of the queue has stopped watching it.
        watchMainQueue(in: items)
        return true
    }

    /// Fires the timers that are due now, in order. A timer that is added by a handler waits for the next pass.
    private func fireTimers(in items: ModeItems) {
        refreshClock()
        let due = items.timers.due(at: now)
        for timer in due { fire(timer) }
        lock.unlock()
        withExtendedLifetime(due) {}
        lock.lock()
    }

    private func fire(_ timer: LoopTimer) {
        refreshClock()
        guard timer.isValid, !timer.isFiring, !timer.places.isEmpty, timer.deadline <= now else {
            return
        }
        let fired = timer.deadline
        timer.isFiring = true
        for place in timer.places { place.mode.timers.suspend(place.slot) }
        lock.unlock()
        callOut(.timer) { timer.handler(timer) }
        if !timer.repeats { timer.invalidate() }
        lock.lock()
        timer.isFiring = false
        guard timer.isValid else { return }
        // A later instant that the handler has set is honoured, an earlier one is not.
        if timer.deadline <= fired {
            refreshClock()
            let missed = (now - fired) / timer.intervalNanoseconds
            timer.deadline = fired + (missed + 1) * timer.intervalNanoseconds
        }
        for place in timer.places { place.mode.timers.resume(place.slot, deadline: timer.deadline) }
    }
}
