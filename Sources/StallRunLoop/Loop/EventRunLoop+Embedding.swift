// A loop inside of another one, such as that of a toolkit or of libuv: the other one sleeps, and polls this one when there is
// something to do.

internal import CLinux
internal import Glibc
public import StallModel

extension EventRunLoop {
    /// A descriptor that is readable when a run in `mode` has something to do: a wake-up, a due timer, a ready descriptor, the
    /// main queue. For a loop of another kind on the same thread, which has to watch it and poll this one:
    ///
    ///     let descriptor = try loop.fileDescriptor()
    ///     while true {
    ///         var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    ///         poll(&request, 1, loop.pollTimeout())
    ///         loop.run(for: .zero)
    ///     }
    ///
    /// The loop arms its timer when the descriptor is requested and whenever a run ends; call this on its own thread.
    /// The loop may have another descriptor after a fork, or when the app has closed it: call this again then. Do not
    /// read it or add it to a set of the loop's own.
    ///
    /// - Throws: ``LoopError/system(call:errno:)`` when there is no descriptor left.
    public func fileDescriptor(inMode mode: LoopMode = .default) throws(LoopError) -> CInt {
        try requireDescriptors()
        lock.lock()
        defer { lock.unlock() }
        guard takeTimerDescriptor() else { throw .system(call: "timerfd_create", errno: errno) }
        let items = itemsToAdd(to: mode)
        watchMainQueue(in: items)
        let epoll = items.epoll(of: self)
        guard items.poller?.isBroken == false else {
            throw .system(call: "epoll_create1", errno: EMFILE)
        }
        wake.embed()
        if !embeddedItems.contains(where: { $0 === items }) { embeddedItems.append(items) }
        armForEmbedding()
        return epoll
    }

    /// When a run in `mode` has something to do without any event: now if blocks or signalled sources wait or a timer is due, else
    /// when the next timer is; nil when there is none. Any thread may call it.
    public func nextDeadline(inMode mode: LoopMode = .default) -> MonotonicInstant? {
        lock.lock()
        defer { lock.unlock() }
        guard let items = items(of: mode) else { return nil }
        let now = stall_monotonic_ns()
        let deadline = hasWork(in: items) ? now : items.timers.pointee.wakeDeadline()
        return deadline == .max ? nil : MonotonicInstant(nanoseconds: max(now, deadline))
    }

    /// The same as poll(2) and epoll_wait(2) take it: in milliseconds, rounded up; -1 for no deadline.
    public func pollTimeout(inMode mode: LoopMode = .default) -> CInt {
        guard let deadline = nextDeadline(inMode: mode) else { return -1 }
        let now = stall_monotonic_ns()
        guard deadline.nanoseconds > now else { return 0 }
        return CInt(clamping: (deadline.nanoseconds - now + 999_999) / 1_000_000)
    }

    /// Sets the timer for the modes that another loop waits for. With the lock.
    func armForEmbedding() {
        var earliest = UInt64.max
        for items in embeddedItems {
            earliest = min(earliest, items.timers.pointee.wakeDeadline())
        }
        arm(earliest)
    }

    /// A run of an empty mode ends before it calls the kernel. Its descriptor would stay readable forever because of a
    /// wake-up, or of a timer that is gone. With the lock.
    func takeEmbeddedEvents(_ mode: LoopMode) {
        guard let items = embeddedItems.first(where: { $0.mode == mode }) else { return }
        wake.dropMarks()
        armForEmbedding()
        let epoll = items.epoll(of: self)
        guard items.poller?.isBroken == false, items.poller?.isLost == false else { return }
        // The mode has no descriptors, so these are the loop's own: each is reported once a change.
        var ready = stall_ready()
        for _ in 0..<3 {
            if stall_poller_poll(epoll, &ready, 1) <= 0 { break }
        }
        // One that was posted just now may have been reported by what was taken.
        tellEmbedder(of: items, wasWoken: false)
    }

    /// A run has ended that may have taken the report of something that it did not look at any more: the descriptor reports it
    /// again. With the lock.
    func tellEmbedder(of items: ModeItems, wasWoken: Bool) {
        guard embeddedItems.contains(where: { $0 === items }) else { return }
        if wasWoken || hasWork(in: items) { wake.nudge() }
    }

    /// Whether a run in the mode has something to do without any event or timer. With the lock.
    private func hasWork(in items: ModeItems) -> Bool {
        items.isAnySignalled || blocks.mayHoldBlock(for: items.mode, isCommon: items.isCommon)
    }
}
