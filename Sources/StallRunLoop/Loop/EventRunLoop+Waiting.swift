// Looking for the next event: first at what needs no system call, then in the kernel.

internal import CLinux
internal import Glibc

/// What an iteration serves: at most one thing, so that all get their turn.
enum LoopEvent {
    /// Nothing, a wake-up, or the time is up.
    case none
    case timers
    case mainQueue
    /// Without a reference: the source is looked up again when it is served, if it is still there.
    case descriptor(stall_ready)
    /// Several descriptors, for batch delivery.
    case descriptors(DescriptorBatch)

    var isMainQueue: Bool { if case .mainQueue = self { true } else { false } }
}

extension EventRunLoop {
    /// What is ready now.
    func poll(_ items: ModeItems) -> LoopEvent {
        if wake.takePending() { tookWakeUp = true }
        refreshClock()
        let isTimerDue = items.timers.pointee.earliest <= now
        // Timers and descriptors take turns when both are always ready.
        if isTimerDue && !(servedTimersLast && items.needsPolling) { return .timers }
        guard items.needsPolling || wake.isEmbedded, let event = ask(items, forEver: false) else {
            return isTimerDue ? .timers : .none
        }
        return event
    }

    /// Sleeps until something is ready, a wake-up comes, or `deadline`.
    func wait(in items: ModeItems, until deadline: UInt64) -> LoopEvent {
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        guard wake.prepareToSleep() else { return poll(items) }
        defer {
            wake.endSleep()
            if wake.takePending() { tookWakeUp = true }
        }
        refreshClock()
        var isAsleep = false
        while true {
            let wakeAt = min(items.timers.pointee.wakeDeadline(), deadline)
            // To arm for an instant that has just passed costs 40 times a look at the clock.
            if wakeAt &- now < 10_000 { readClock() }
            guard wakeAt > now else { return poll(items) }
            if !isAsleep {
                isAsleep = true
                stall_beacon_publish(beacon, UInt8(STALL_LOOP_WAITING), now)
                checkBeforeSleep(items)
            }
            arm(wakeAt)
            let event = ask(items, forEver: true, until: wakeAt)
            readClock()
            stall_beacon_publish_awake(beacon, now)
            if let event { return event }
            if items.timers.pointee.earliest <= now { return .timers }
            if wake.isPending || deadline <= now { return .none }
            isAsleep = false
        }
    }

    /// Sets the timer descriptor, unless it is set to that instant already.
    func arm(_ deadline: UInt64) {
        guard deadline != armedDeadline else { return }
        armedDeadline = deadline
        _ = stall_timerfd_arm(
            timerDescriptor, deadline == .max ? 0 : min(deadline, UInt64(Int64.max)))
    }

    /// Asks the kernel; to sleep, without the lock. Nil when nothing but the loop's own descriptors was ready.
    private func ask(_ items: ModeItems, forEver: Bool, until wakeAt: UInt64 = 0) -> LoopEvent? {
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        let epoll = items.epoll(of: self)
        if items.poller?.isBroken == true || (lacksMainQueue && items.isCommon) {
            return askWithoutSet(items, until: forEver ? wakeAt : nil)
        }
        if descriptorDelivery == .batch { return askForBatch(items, forEver: forEver) }
        // The loop's own two descriptors are reported once a change; a poll looks behind them.
        for _ in 0..<(forEver ? 1 : 3) {
            var ready = stall_ready()
            let (count, error): (CInt, CInt)
            if forEver {
                lock.unlock()
                count = stall_poller_wait(epoll, &ready, 1, -1)
                error = errno
                lock.lock()
            } else {
                count = stall_poller_poll(epoll, &ready, 1)
                error = errno
            }
            if count < 0 { checkDescriptors(items, error) }
            guard count > 0 else { return nil }
            if let event = items.event(ready) { return event }
            items.renewPollerIfNeeded(of: self)
        }
        return nil
    }

    private func askForBatch(_ items: ModeItems, forEver: Bool) -> LoopEvent? {
        let epoll = items.epoll(of: self)
        var batch = spareBatch ?? DescriptorBatch()
        spareBatch = nil
        let capacity = CInt(DescriptorBatch.capacity)
        let (count, error): (CInt, CInt)
        if forEver {
            lock.unlock()
            count = stall_poller_wait(epoll, batch.reported, capacity, -1)
            error = errno
            lock.lock()
        } else {
            count = stall_poller_poll(epoll, batch.reported, capacity)
            error = errno
        }
        if count < 0 { checkDescriptors(items, error) }
        var isMainQueueReady = false
        batch.count = 0
        batch.removals = items.removals
        for index in 0..<Int(max(0, count)) {
            let isSource = items.poller?.forEachSource(of: batch.reported[index]) { ready, source in
                guard batch.count < DescriptorBatch.capacity else { return }
                batch.ready[batch.count] = ready
                (batch.sources + batch.count).initialize(to: .passRetained(source))
                batch.count += 1
            }
            if isSource == false, case .mainQueue = items.resolve(batch.reported[index]) {
                isMainQueueReady = true
            }
        }
        items.renewPollerIfNeeded(of: self)
        if batch.count > 0 && !isMainQueueReady { return .descriptors(batch) }
        // They stay in their modes, so this is not the last reference to any.
        for index in 0..<batch.count { batch.sources[index].release() }
        giveBack(batch)
        return isMainQueueReady ? .mainQueue : nil
    }

    /// Keeps the buffers for the next batch. A nested run has made some of its own meanwhile.
    func giveBack(_ batch: DescriptorBatch) {
        if spareBatch == nil { spareBatch = batch } else { batch.deallocate() }
    }
}
