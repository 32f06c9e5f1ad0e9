// The loop's own descriptors when they are missing: the process has none left, the app closed all from 3 on, or the
// process was forked and they are its parent's. The loop continues without them, and takes new ones as soon as it can.

internal import CLinux
internal import Glibc

extension EventRunLoop {
    /// How long a loop without descriptors sleeps before it looks around.
    private static let longestSleep_ms: CInt = 10
    private static let renewalInterval: UInt64 = 1_000_000_000

    /// Takes new sets, and new descriptors in place of those that are not the loop's any more. Numbers that the app may own by
    /// now are not closed.
    private func renewDescriptors() {
        for items in modes { items.poller?.discardSet() }
        if !wake.isOwn { wake.renew(thread: descriptorOwner) }
        if !stall_descriptor_is_for(timerDescriptor, descriptorOwner) {
            timerDescriptor = needsTimerDescriptor ? makeTimerDescriptor() : -1
            armedDeadline = 0
        }
        for items in modes { items.renewPoller(of: self) }
        lastRenewal = stall_monotonic_ns()
    }

    /// A timer in place of a timeout: for a kernel that takes no nanoseconds, and for another loop that sleeps for this one.
    package var needsTimerDescriptor: Bool { !waitsPrecisely || wake.isEmbedded }

    func makeTimerDescriptor() -> CInt {
        stall_descriptor_own_for(stall_timerfd_create(), descriptorOwner)
    }

    /// The descriptors of the loop that each of its sets watches.
    var ownDescriptors: Poller.Own {
        Poller.Own(
            wake: wake.descriptor,
            timer: needsTimerDescriptor || timerDescriptor >= 0 ? timerDescriptor : nil,
            thread: descriptorOwner)
    }

    /// Makes the timer that it could do without so far. False when there is no descriptor for it.
    func takeTimerDescriptor() -> Bool {
        if timerDescriptor < 0 {
            timerDescriptor = makeTimerDescriptor()
            armedDeadline = 0
        }
        guard timerDescriptor >= 0 else { return false }
        for items in modes { items.poller?.addTimer(timerDescriptor) }
        return true
    }

    /// The kernel, or a filter that came later, refuses timeouts in nanoseconds after all.
    private func waitWithTimer() {
        waitsPrecisely = false
        if !takeTimerDescriptor() {
            for items in modes { items.poller?.isBroken = true }
        }
    }

    /// Takes those that the loop has none of, and leaves the others as they are.
    private func takeMissingDescriptors() {
        if wake.descriptor < 0 { wake.renew(thread: descriptorOwner) }
        if needsTimerDescriptor && timerDescriptor < 0 {
            timerDescriptor = makeTimerDescriptor()
            armedDeadline = 0
        }
        if lacksMainQueue { takeMainQueue() }
        for items in modes where items.poller?.isBroken == true { items.replacePoller(of: self) }
        lastRenewal = stall_monotonic_ns()
    }

    /// Whether a number belongs to a file of the app by now.
    private var hasForeignDescriptor: Bool {
        wake.isLost
            || (timerDescriptor >= 0 && stall_waiter_is_lost(timerDescriptor, descriptorOwner))
            || modes.contains { $0.poller?.isLost == true }
    }

    /// Gets the descriptor of Dispatch's main queue.
    func takeMainQueue() {
        mainQueueDescriptor = stall_main_queue_descriptor()
        if mainQueueDescriptor >= 0 {
            _ = stall_descriptor_mark_for(mainQueueDescriptor, descriptorOwner)
        }
        lacksMainQueue = mainQueueDescriptor < 0 && errno != ENOSYS
        guard mainQueueDescriptor >= 0, let running else { return }
        watchMainQueue(in: running)
    }

    /// Makes what the loop lacks to sleep in the kernel, in the default mode. On the loop's thread.
    func requireDescriptors() throws(LoopError) {
        lock.lock()
        defer { lock.unlock() }
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        if wake.descriptor < 0 { wake.renew(thread: descriptorOwner) }
        guard wake.descriptor >= 0 else { throw .system(call: "eventfd", errno: errno) }
        guard !needsTimerDescriptor || takeTimerDescriptor() else {
            throw .system(call: "timerfd_create", errno: errno)
        }
        if lacksMainQueue { takeMainQueue() }
        if lacksMainQueue { throw .system(call: "eventfd", errno: errno) }
        _ = defaultItems.epoll(of: self)
        if defaultItems.poller?.isBroken == true { defaultItems.replacePoller(of: self) }
        let error = errno
        guard let poller = defaultItems.poller, poller.isBroken else { return }
        throw .system(call: poller.epoll < 0 ? "epoll_create1" : "epoll_ctl", errno: error)
    }

    /// In a forked child all are shared with the parent: to set the timer here would set it there, and to take an event
    /// here would lose it there.
    func renewAfterFork() {
        forkGeneration = stall_fork_generation()
        for items in modes { items.poller?.discardSet() }
        stall_descriptor_close_for(timerDescriptor, descriptorOwner)
        timerDescriptor = -1
        wake.close()
        descriptorOwner = stall_gettid()
        wake.renew(thread: descriptorOwner)
        stall_beacon_publish_thread(beacon, descriptorOwner)
        slackTime = 0
        renewDescriptors()
    }

    /// The kernel refused to wait. When the set is no set any more, the loop takes new descriptors; when that happens
    /// again within a second, it continues without them.
    func checkDescriptors(_ items: ModeItems, _ error: CInt) {
        switch error {
        case EBADF, EINVAL: loseDescriptors()
        case EINTR: break
        // A filter refuses with an error of its choice.
        default: if waitsPrecisely { waitWithTimer() }
        }
    }

    /// The app has closed the loop's descriptors, and perhaps opened files of its own under their numbers: those must be
    /// neither set, nor waited for, nor asked for events.
    func loseDescriptors() {
        if stall_monotonic_ns() - lastRenewal >= Self.renewalInterval {
            renewDescriptors()
        } else {
            for items in modes { items.poller?.discardSet() }
        }
    }

    /// Polls without an epoll set, in short sleeps up to `wakeAt`, or not at all when it is nil.
    func askWithoutSet(_ items: ModeItems, until wakeAt: UInt64?) -> LoopEvent? {
        let clock = stall_monotonic_ns()
        if clock - lastRenewal >= Self.renewalInterval {
            if hasForeignDescriptor { renewDescriptors() } else { takeMissingDescriptors() }
        }
        guard let poller = items.poller else { return nil }
        var timeout: CInt = 0
        if let wakeAt, wakeAt > clock {
            timeout = CInt(min((wakeAt - clock) / 1_000_000 + 1, UInt64(Self.longestSleep_ms)))
        }
        let ready = poller.pollWithoutSet(
            mainQueue: mainQueueDescriptor, timeout_ms: timeout, lock)
        guard let ready else { return nil }
        switch poller.resolve(ready) {
        case .mainQueue: return .mainQueue
        case .descriptor: return .descriptor(ready)
        case .nothing: return nil
        }
    }
}
