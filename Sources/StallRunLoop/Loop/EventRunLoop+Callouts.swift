// Everything that runs the app's code. Each callout releases the lock, and publishes in the beacon what it is.
//
// The last reference to an item runs the app's code too, when what its handler holds is freed. So items are handed to
// functions that consume them while the lock is not held.

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
        // The last one first, so that each is released with its call.
        var waiting: [LoopObserver] = items.orderedObservers().reversed().filter {
            $0.activities.contains(activity) && $0.isValid && !$0.isFiring
        }
        while let observer = waiting.popLast() {
            let handler = observer.handlerInTurn(of: self)
            lock.unlock()
            call(consume observer, consume handler, activity)
            lock.lock()
        }
    }

    /// Releases both before it returns: the next observer may run for long.
    @inline(never) private func call(
        _ observer: consuming LoopObserver,
        _ handler: consuming ((LoopObserver, LoopActivity) -> Void)?, _ activity: LoopActivity
    ) {
        guard let handler else { return }
        observer.firing.store(true, ordering: .relaxed)
        callOut(.observer) { handler(observer, activity) }
        if !observer.repeats { observer.invalidate() }
        observer.firing.store(false, ordering: .relaxed)
    }

    /// Runs the blocks that were posted before it began and that the mode allows.
    @inline(__always) func drainBlocks(in items: ModeItems) {
        if blocks.mayHoldBlock(for: items.mode, isCommon: items.isCommon) { runBlocks(in: items) }
    }

    @inline(never) private func runBlocks(in items: ModeItems) {
        var left = mostBlocksPerPass.load(ordering: .relaxed)
        // All of it: a nested run finds what was posted since, so that the order does not depend on the limit.
        var batch = blocks.takeAll()
        drainDepth += 1
        lock.unlock()
        while left > 0,
            let body = blocks.next(in: &batch, mode: items.mode, isCommon: items.isCommon)
        {
            left -= 1
            callOut(.block, body)
        }
        lock.lock()
        drainDepth -= 1
        blocks.finish(batch)
        // The rest has its turn after timers and descriptors have had theirs.
        if left == 0 && blocks.mayHoldBlock(for: items.mode, isCommon: items.isCommon) {
            wake.wakeUp()
        }
    }

    /// Serves the signalled sources of the mode, by order and then by the time of their signal; with `onlyOne`,
    /// the first of them.
    @inline(__always) func serveSources(in items: ModeItems, onlyOne: Bool) -> Bool {
        items.mayHaveSignals && serveSignalledSources(in: items, onlyOne: onlyOne)
    }

    @inline(never) private func serveSignalledSources(in items: ModeItems, onlyOne: Bool) -> Bool {
        if let only = items.onlySignalledSource() {
            lock.unlock()
            let isServed = serve(consume only)
            lock.lock()
            return isServed
        }
        guard items.mayHaveSignals else { return false }
        let signalled = items.signalledSources()
        lock.unlock()
        let isServed = serve(consume signalled, onlyOne: onlyOne)
        lock.lock()
        return isServed
    }

    @inline(never) private func serve(
        _ signalled: consuming [SignalledSource], onlyOne: Bool
    ) -> Bool {
        var handled = false
        for signal in signalled where serve(signal.source) {
            handled = true
            if onlyOne { break }
        }
        return handled
    }

    @inline(never) private func serve(_ source: consuming LoopSource) -> Bool {
        source.serve { callOut(.source, $0) }
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
        case .descriptor(let ready):
            // An observer, or another thread, may have removed it since the kernel reported it.
            guard case .descriptor(let source) = items.resolve(ready) else { return false }
            let served = Unmanaged.passRetained(source)
            lock.unlock()
            let isServed = call(served, ready.descriptorEvents)
            lock.lock()
            return isServed
        case .descriptors(let batch):
            lock.unlock()
            let isServed = call(batch, in: items)
            lock.lock()
            giveBack(batch)
            return isServed
        }
    }

    private func call(_ batch: DescriptorBatch, in items: ModeItems) -> Bool {
        var handled = false
        for index in 0..<batch.count {
            let source = batch.sources[index]
            let ready = batch.ready[index]
            // An earlier handler of the batch, for example, may have removed this one.
            if items.removals != batch.removals && !isWatched(source, ready, in: items) {
                source.release()
            } else if call(source, ready.descriptorEvents) {
                handled = true
            }
        }
        return handled
    }

    @inline(never) private func isWatched(
        _ source: Unmanaged<DescriptorSource>, _ ready: stall_ready, in items: ModeItems
    ) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard case .descriptor(let watched) = items.resolve(ready) else { return false }
        return Unmanaged.passUnretained(watched).toOpaque() == source.toOpaque()
    }

    /// Consumes a reference. A function of its own, which is left without the lock: whatever the optimizer makes of
    /// references, the last one ends here.
    @inline(never) private func call(
        _ source: Unmanaged<DescriptorSource>, _ events: DescriptorEvents
    ) -> Bool {
        source.takeRetainedValue().serve(events) { callOut(.descriptor, $0) }
    }

    private func serveMainQueue(in items: ModeItems) -> Bool {
        lock.unlock()
        // Dispatch's descriptor may have been closed as well; what the app has there now is not read.
        if !stall_descriptor_is_lost(mainQueueDescriptor, descriptorOwner) {
            _ = stall_eventfd_take(mainQueueDescriptor)
        }
        owesMainQueue = false
        isInMainQueue = true
        callOut(.mainQueue) { stall_main_queue_drain() }
        isInMainQueue = false
        lock.lock()
        // A nested run of a block of the queue has stopped watching it.
        watchMainQueue(in: items)
        return true
    }

    /// Fires the timers that are due now, in order. A timer that is added by a handler waits for the next pass.
    func fireTimers(in items: ModeItems) {
        refreshClock()
        if let only = items.timers.pointee.onlyDue(at: now) {
            if fire(only) { letGo(of: consume only) }
        } else {
            let due = items.timers.pointee.due(at: now)
            for timer in due { _ = fire(timer) }
            letGo(of: consume due)
        }
    }

    /// Drops what may be the last reference to an item, without the lock.
    @inline(never) private func letGo<Item>(of item: consuming Item) {
        lock.unlock()
        drop(consume item)
        lock.lock()
    }

    @inline(never) private func drop<Item>(_ item: consuming Item) {}

    /// Returns whether this may be the last reference to it; false when it stays in its modes.
    private func fire(_ timer: LoopTimer) -> Bool {
        refreshClock()
        // An earlier handler of the pass may have moved it to another loop, whose lock guards it from then on.
        guard timer.owner.loopNumber == number else { return true }
        guard timer.isValid, !timer.isFiring, !timer.places.isEmpty, timer.deadline <= now else {
            return true
        }
        // A timer that is called once needs its handler no more.
        guard let handler = timer.repeats ? timer.handler : timer.handler.take() else {
            return true
        }
        let fired = timer.deadline
        timer.isFiring = true
        timer.places.forEach { $0.pointee.suspend($1) }
        lock.unlock()
        call(consume handler, of: timer)
        lock.lock()
        guard timer.owner.loopNumber == number else {
            lock.unlock()
            endFiringElsewhere(timer, fired)
            lock.lock()
            return true
        }
        endFiring(timer, fired)
        guard timer.repeats else {
            _ = invalidateLocked(timer)
            return true
        }
        return timer.places.isEmpty
    }

    /// Releases the handler before it returns: the caller takes the lock then.
    @inline(never) private func call(
        _ handler: consuming @escaping (LoopTimer) -> Void, of timer: LoopTimer
    ) {
        callOut(.timer) { handler(timer) }
    }

    /// The handler that was called at the deadline `fired` has returned. With the lock of the loop that the timer is in
    /// now.
    @inline(__always) func endFiring(_ timer: LoopTimer, _ fired: UInt64) {
        timer.isFiring = false
        guard timer.repeats else { return }
        guard timer.isValid else { return }
        // An instant that the handler has set is honoured: it was not before the time of the call.
        if timer.deadline <= fired {
            refreshClock()
            timer.deadline = fired
            timer.deadline = timer.nextCall(after: now)
        }
        timer.places.forEach { $0.pointee.resume($1, deadline: timer.deadline) }
    }

    /// The same for a timer whose handler has moved it to another loop, or out of this one. That loop did not count on
    /// it while the handler ran, and may sleep too long.
    @inline(never) private func endFiringElsewhere(_ timer: LoopTimer, _ fired: UInt64) {
        if !timer.repeats { timer.invalidate() }
        guard timer.withLock({ endFiring(timer, fired) }) else { return }
        LivingLoops.with(timer.owner.loopNumber) { $0.wake.nudge() }
    }
}
