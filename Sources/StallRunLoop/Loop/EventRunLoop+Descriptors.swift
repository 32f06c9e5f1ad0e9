// The loop's own descriptors when they are missing: the process has none left, the app closed all from 3 on, or the
// process was forked and they are its parent's. The loop goes on without them, and takes new ones as soon as it can.

internal import CLinux
internal import Glibc

extension EventRunLoop {
    /// How long a loop without descriptors sleeps before it looks around.
    private static let longestSleep_ms: CInt = 10
    private static let renewalInterval: UInt64 = 1_000_000_000

    /// Takes new descriptors in place of all that the loop has. The old numbers are not closed: the app may own
    /// them by now.
    private func renewDescriptors() {
        for items in modes { items.poller?.discardSet(closing: false) }
        wake.renew()
        timerDescriptor = stall_timerfd_create()
        armedDeadline = 0
        for items in modes { items.renewPoller(of: self) }
        lastRenewal = stall_monotonic_ns()
    }

    /// Takes those that the loop has none of, and leaves the others as they are.
    private func takeMissingDescriptors() {
        if wake.descriptor < 0 { wake.renew() }
        if timerDescriptor < 0 {
            timerDescriptor = stall_timerfd_create()
            armedDeadline = 0
        }
        if lacksMainQueue { takeMainQueue() }
        for items in modes where items.poller?.isBroken == true { items.replacePoller(of: self) }
        lastRenewal = stall_monotonic_ns()
    }

    /// Whether a number belongs to a file of the app by now.
    private var hasForeignDescriptor: Bool {
        [wake.descriptor, timerDescriptor].contains { $0 >= 0 && stall_descriptor_is_foreign($0) }
            || modes.contains {
                $0.poller.map { $0.epoll >= 0 && stall_descriptor_is_foreign($0.epoll) } ?? false
            }
    }

    /// Asks Dispatch for the descriptor of its main queue.
    func takeMainQueue() {
        mainQueueDescriptor = stall_main_queue_descriptor()
        lacksMainQueue = mainQueueDescriptor < 0 && errno != ENOSYS
        guard mainQueueDescriptor >= 0, let running else { return }
        watchMainQueue(in: running)
    }

    /// Makes what the loop lacks to sleep in the kernel, in the default mode. On the loop's thread.
    func requireDescriptors() throws(LoopError) {
        lock.lock()
        defer { lock.unlock() }
        if forkGeneration != stall_fork_generation() { renewAfterFork() }
        if wake.descriptor < 0 { wake.renew() }
        guard wake.descriptor >= 0 else { throw .system(call: "eventfd", errno: errno) }
        if timerDescriptor < 0 { timerDescriptor = stall_timerfd_create() }
        guard timerDescriptor >= 0 else { throw .system(call: "timerfd_create", errno: errno) }
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
        for items in modes { items.poller?.discardSet(closing: true) }
        stall_descriptor_close(timerDescriptor)
        stall_descriptor_close(wake.descriptor)
        stall_beacon_publish_thread(beacon, stall_gettid())
        renewDescriptors()
    }

    /// The kernel refused to wait. When the set is no set any more, the loop takes new descriptors; when that happens
    /// again within a second, it goes on without them.
    func checkDescriptors(_ items: ModeItems, _ error: CInt) {
        guard error == EBADF || error == EINVAL else { return }
        if stall_monotonic_ns() - lastRenewal >= Self.renewalInterval {
            renewDescriptors()
        } else {
            items.poller?.discardSet(closing: false)
        }
    }

    /// Before the loop sleeps: if the app has closed the loop's descriptors and opened files of its own under their
    /// numbers, those must be neither armed nor waited for.
    func checkBeforeSleep(_ items: ModeItems) {
        guard let poller = items.poller, !poller.isBroken, poller.epoll >= 0 else { return }
        if stall_descriptor_is_foreign(poller.epoll) { checkDescriptors(items, EBADF) }
    }

    /// Asks without an epoll set, in short sleeps up to `wakeAt`, or not at all when it is nil.
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
