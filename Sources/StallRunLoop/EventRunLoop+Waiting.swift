// Looking for the next event: first at what needs no system call, then in the kernel.

internal import CLinux

/// What an iteration serves: at most one thing, so that all get their turn.
enum LoopEvent {
    /// Nothing, a wake-up, or the time is up.
    case none
    case timers
    case mainQueue
    case descriptor(DescriptorSource, DescriptorEvents)
    /// Several events as the kernel reported them, for batch delivery.
    case descriptors(UnsafeMutableBufferPointer<stall_ready>, count: Int)

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
        guard items.needsPolling, let event = ask(items, forEver: false) else {
            return isTimerDue ? .timers : .none
        }
        return event
    }

    /// Sleeps until something is ready, a wake-up comes, or `deadline`.
    func wait(in items: ModeItems, until deadline: UInt64) -> LoopEvent {
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
            }
            arm(wakeAt)
            let event = ask(items, forEver: true)
            readClock()
            stall_beacon_publish_awake(beacon, now)
            if let event { return event }
            if items.timers.pointee.earliest <= now { return .timers }
            if wake.isPending || deadline <= now { return .none }
            isAsleep = false
        }
    }

    /// Sets the timer descriptor, unless it is set to that instant already.
    private func arm(_ deadline: UInt64) {
        guard deadline != armedDeadline else { return }
        armedDeadline = deadline
        _ = stall_timerfd_arm(
            timerDescriptor, deadline == .max ? 0 : min(deadline, UInt64(Int64.max)))
    }

    /// Asks the kernel; to sleep, without the lock. Nil when nothing but the loop's own descriptors was ready.
    private func ask(_ items: ModeItems, forEver: Bool) -> LoopEvent? {
        let poller = items.poller(of: self)
        if descriptorDelivery == .batch { return askForBatch(poller, forEver: forEver) }
        // The loop's own two descriptors are reported once a change; a poll looks behind them.
        for _ in 0..<(forEver ? 1 : 3) {
            var ready = stall_ready()
            if forEver { lock.unlock() }
            let count = stall_poller_wait_one(poller.epoll, &ready, forEver ? -1 : 0)
            if forEver { lock.lock() }
            guard count > 0 else { return nil }
            switch poller.resolve(ready) {
            case .nothing: continue
            case .mainQueue: return .mainQueue
            case .descriptor(let source, let events): return .descriptor(source, events)
            }
        }
        return nil
    }

    private func askForBatch(_ poller: Poller, forEver: Bool) -> LoopEvent? {
        let ready = batchBuffer ?? .allocate(capacity: Poller.batchSize)
        batchBuffer = nil
        if forEver { lock.unlock() }
        let count = stall_poller_wait(
            poller.epoll, ready.baseAddress!, CInt(Poller.batchSize), forEver ? -1 : 0)
        if forEver { lock.lock() }
        var isMainQueueReady = false
        var kept = 0
        for index in 0..<Int(max(0, count)) {
            switch poller.resolve(ready[index]) {
            case .nothing: break
            case .mainQueue: isMainQueueReady = true
            case .descriptor:
                ready[kept] = ready[index]
                kept += 1
            }
        }
        if kept > 0 && !isMainQueueReady { return .descriptors(ready, count: kept) }
        returnBatchBuffer(ready)
        return isMainQueueReady ? .mainQueue : nil
    }

    /// Keeps the buffer for the next batch. A nested run has made one of its own meanwhile.
    func returnBatchBuffer(_ buffer: UnsafeMutableBufferPointer<stall_ready>) {
        if batchBuffer == nil { batchBuffer = buffer } else { buffer.deallocate() }
    }
}
