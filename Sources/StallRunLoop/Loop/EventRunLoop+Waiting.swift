// Looking for the next event: first at what needs no system call, then in the kernel.

internal import CLinux
internal import Glibc

/// The event that an iteration serves: at most one, so that all get their turn. If all are always ready, the main queue has
/// every second one, and of the others timers have one and descriptors the next. The kernel puts one that it has reported
/// behind the others.
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
    /// The event that is ready now.
    func poll(_ items: ModeItems) -> LoopEvent {
        if wake.takePending() { tookWakeUp = true }
        refreshClock()
        let isTimerDue = items.timers.pointee.earliest <= now
        // Timers and descriptors take turns when both are always ready.
        if isTimerDue && !(servedTimersLast && items.needsPolling) { return .timers }
        guard items.needsPolling || wake.isEmbedded, let event = ask(items, until: nil) else {
            return isTimerDue ? .timers : .none
        }
        return event
    }

    /// Sleeps until something is ready, a wake-up comes, or `deadline`.
    func wait(in items: ModeItems, until deadline: UInt64) -> LoopEvent {
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        refreshClock()
        if min(items.timers.pointee.wakeDeadline(), deadline) <= now { return poll(items) }
        guard wake.prepareToSleep() else { return poll(items) }
        defer {
            wake.endSleep()
            if wake.takePending() { tookWakeUp = true }
        }
        var isAsleep = false
        while true {
            let wakeAt = min(items.timers.pointee.wakeDeadline(), deadline)
            // A timeout is counted from now on. Arming for an instant that has just passed costs 40 times as much as
            // reading the clock.
            if wakeAt != .max && (waitsPrecisely || wakeAt &- now < 10_000) { readClock() }
            guard wakeAt > now else { return poll(items) }
            if !isAsleep {
                isAsleep = true
                stall_beacon_publish(beacon, UInt8(STALL_LOOP_WAITING), now)
            }
            let event = ask(items, until: wakeAt)
            readClock()
            stall_beacon_publish_awake(beacon, now)
            if let event { return event }
            checkSlack(wakeAt)
            if items.timers.pointee.earliest <= now { return .timers }
            if wake.isPending || deadline <= now { return .none }
            isAsleep = false
        }
    }

    private var isTimerLost: Bool { stall_waiter_is_lost(timerDescriptor, descriptorOwner) }

    /// Sets the timer descriptor, unless it is set to that instant already, or is the app's by now.
    func arm(_ deadline: UInt64) {
        guard deadline != armedDeadline else { return }
        if timerDescriptor >= 0 && isTimerLost {
            loseDescriptors()
            // Without a set the loop does not sleep until a timer is set.
            guard !isTimerLost else { return }
        }
        armedDeadline = deadline
        _ = stall_timerfd_arm(
            timerDescriptor, deadline == .max ? 0 : min(deadline, UInt64(Int64.max)))
    }

    /// Polls the kernel; until `wakeAt`, without the lock, or nil for what is ready now. Nil when nothing but the
    /// loop's own
    /// descriptors was ready.
    private func ask(_ items: ModeItems, until wakeAt: UInt64?) -> LoopEvent? {
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        if wakeAt == nil && isSetQuiet { return nil }
        isSetQuiet = false
        let renewal = lastRenewal
        _ = items.epoll(of: self)
        if let wakeAt, !waitsPrecisely { arm(wakeAt) }
        if let poller = items.poller, !poller.isBroken, poller.isLost { loseDescriptors() }
        // A thread that posted meanwhile found no descriptor to write to.
        if wakeAt != nil && lastRenewal != renewal && wake.isPendingAfterRenewal { return nil }
        if items.poller?.isBroken == true || (lacksMainQueue && items.isCommon) {
            return askWithoutSet(items, until: wakeAt)
        }
        if descriptorDelivery == .batch { return askForBatch(items, until: wakeAt) }
        // The loop's own descriptors are reported once a change; a poll looks behind them.
        for _ in 0..<(wakeAt == nil ? 3 : 1) {
            var ready = stall_ready()
            let (count, error) = askKernel(items, &ready, capacity: 1, until: wakeAt)
            if count < 0 { checkDescriptors(items, error) }
            guard count > 0 else { return nil }
            if let event = items.event(ready) { return event }
            items.renewPollerIfNeeded(of: self)
        }
        return nil
    }

    /// One system call. To sleep, without the lock.
    @inline(__always) private func askKernel(
        _ items: ModeItems, _ ready: UnsafeMutablePointer<stall_ready>, capacity: CInt,
        until wakeAt: UInt64?
    ) -> (count: CInt, error: CInt) {
        let epoll = items.epoll(of: self)
        guard let wakeAt else {
            let count = stall_poller_poll(epoll, ready, capacity)
            return (count, errno)
        }
        let isTimed = waitsPrecisely && wakeAt != .max
        if isTimed && slackTime == 0 { readSlack() }
        lock.unlock()
        let count =
            isTimed
            ? stall_poller_wait_precisely(epoll, ready, capacity, wakeAt &- now, slack)
            : stall_poller_wait(epoll, ready, capacity, -1)
        let error = errno
        lock.lock()
        return (count, error)
    }

    private func readSlack() {
        slack = stall_slack_read()
        slackTime = now
    }

    /// A wait that ended too early or too late was counted on another slack than the thread has now: the app may change it at
    /// any time, as it may the priority. Looked up once a second at most; a busy machine is late as well.
    @inline(__always) private func checkSlack(_ wakeAt: UInt64) {
        guard waitsPrecisely, now < wakeAt || now - wakeAt > 200_000 else { return }
        if now &- slackTime > 1_000_000_000 && slackTime != 0 { readSlack() }
    }

    private func askForBatch(_ items: ModeItems, until wakeAt: UInt64?) -> LoopEvent? {
        // One of the two would have all turns if a batch that has both were always decided in the same way.
        if owesMainQueue, items.setWithMainQueue != nil {
            owesMainQueue = false
            if stall_descriptor_is_readable(mainQueueDescriptor) { return .mainQueue }
        }
        var batch = spareBatch ?? DescriptorBatch()
        spareBatch = nil
        let capacity = CInt(DescriptorBatch.capacity)
        let (count, error) = askKernel(items, batch.reported, capacity: capacity, until: wakeAt)
        if count < 0 { checkDescriptors(items, error) }
        var isMainQueueReady = false
        batch.count = 0
        batch.removals = items.removals
        for index in 0..<Int(max(0, count)) {
            let isSource = items.poller?.forEachSource(
                of: batch.reported[index], isFinal: true
            ) { ready, source in
                batch.append(ready, source)
            }
            if isSource == false, case .mainQueue = items.resolve(batch.reported[index]) {
                isMainQueueReady = true
            }
        }
        items.renewPollerIfNeeded(of: self)
        if batch.count > 0 {
            owesMainQueue = isMainQueueReady
            return .descriptors(batch)
        }
        giveBack(batch)
        return isMainQueueReady ? .mainQueue : nil
    }

    /// Keeps the buffers for the next batch. A nested run has made some of its own meanwhile.
    func giveBack(_ batch: DescriptorBatch) {
        if spareBatch == nil { spareBatch = batch } else { batch.deallocate() }
    }
}
