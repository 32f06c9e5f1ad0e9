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
    case descriptors([stall_ready])

    var isMainQueue: Bool { if case .mainQueue = self { true } else { false } }
}

extension EventRunLoop {
    /// What is ready now.
    func poll(_ items: ModeItems) -> LoopEvent {
        wake.takePending()
        refreshClock()
        let isTimerDue = items.timers.earliest <= now
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
        defer { wake.endSleep() }
        refreshClock()
        var isAsleep = false
        while true {
            let wakeAt = min(items.timers.wakeDeadline(), deadline)
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
            if items.timers.earliest <= now { return .timers }
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

    /// Asks the kernel, without the lock. Nil when nothing but the loop's own descriptors was ready.
    private func ask(_ items: ModeItems, forEver: Bool) -> LoopEvent? {
        let poller = items.poller(of: self)
        if descriptorDelivery == .batch { return askForBatch(poller, forEver: forEver) }
        // The loop's own two descriptors are reported once a change; a poll looks behind them.
        for _ in 0..<(forEver ? 1 : 3) {
            var ready = stall_ready()
            lock.unlock()
            let count = withUnsafeMutablePointer(to: &ready) {
                poller.wait(into: UnsafeMutableBufferPointer(start: $0, count: 1), forEver: forEver)
            }
            lock.lock()
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
        lock.unlock()
        let ready = [stall_ready](unsafeUninitializedCapacity: Poller.batchSize) { buffer, count in
            count = poller.wait(
                into: UnsafeMutableBufferPointer(rebasing: buffer[..<Poller.batchSize]),
                forEver: forEver)
        }
        lock.lock()
        var isMainQueueReady = false
        let descriptors = ready.filter {
            switch poller.resolve($0) {
            case .nothing: return false
            case .mainQueue:
                isMainQueueReady = true
                return false
            case .descriptor: return true
            }
        }
        if isMainQueueReady { return .mainQueue }
        return descriptors.isEmpty ? nil : .descriptors(descriptors)
    }
}
