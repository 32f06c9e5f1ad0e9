// The epoll set of one mode: the loop's eventfd and timerfd, the mode's descriptors, and on the main loop the main
// dispatch queue. One set a mode, so that a descriptor of another mode cannot wake the loop.

internal import CLinux
internal import Glibc
internal import Synchronization

final class Poller {
    /// What became ready.
    enum Event {
        /// Nothing that is not looked at anyway: the eventfd or the timerfd.
        case nothing
        case mainQueue
        case descriptor(DescriptorSource)
    }

    private struct Registration {
        var source: DescriptorSource?
        /// Differs from `source.descriptor` when the mode has two sources for one descriptor.
        var descriptor: CInt
        /// Tells a late event for an earlier user of this slot from one for this user.
        var generation: UInt32
    }

    private static let wakeToken = UInt64.max
    private static let mainQueueToken = UInt64.max - 1
    /// The epoll set; -1 when the process had no descriptor for it.
    private(set) var epoll: CInt
    /// It cannot be relied on: a descriptor was missing, or was closed behind the loop's back.
    @exclusivity(unchecked) var isBroken = false
    /// By the slot of the source in its mode.
    @exclusivity(unchecked) private var registrations: [Registration] = []
    private(set) var watchesMainQueue = false
    /// How many descriptors it watches besides the loop's own.
    private(set) var descriptorCount = 0
    /// The slot that `pollWithoutSet` reported last; with the main queue's token, what is above all slots.
    private var lastPolled: UInt64 = .max
    /// How many it has stopped watching so far. Read without the lock, by handlers of a batch.
    let removals = Atomic<Int>(0)

    init(wake: CInt, timer: CInt) {
        epoll = stall_poller_create()
        isBroken = !addOwn(wake, timer)
    }

    private func addOwn(_ wake: CInt, _ timer: CInt) -> Bool {
        let flags = EPOLLIN.rawValue | EPOLLET.rawValue
        return epoll >= 0 && stall_poller_add(epoll, wake, flags, Self.wakeToken) == 0
            && stall_poller_add(epoll, timer, flags, Self.wakeToken) == 0
    }

    /// Makes a new set with everything that was in the old one. The old number is left alone: the app may own it
    /// by now.
    func renew(wake: CInt, timer: CInt, mainQueue: CInt) {
        epoll = stall_poller_create()
        isBroken = !addOwn(wake, timer)
        guard !isBroken else { return }
        if watchesMainQueue {
            _ = stall_poller_add(epoll, mainQueue, EPOLLIN.rawValue, Self.mainQueueToken)
        }
        for (slot, registration) in registrations.enumerated() {
            guard let source = registration.source else { continue }
            let token = UInt64(registration.generation) << 32 | UInt64(slot)
            // One whose descriptor is gone as well stays without events, as it would have before.
            _ = stall_poller_add(epoll, registration.descriptor, source.events.rawValue, token)
        }
    }

    /// What is ready, by poll(2): for a loop without a set of its own. Waits at most `timeout_ms`, without the loop's
    /// lock.
    func pollWithoutSet(
        mainQueue: CInt, timeout_ms: CInt, _ lock: borrowing LoopLock
    ) -> stall_ready? {
        var requests: [pollfd] = []
        var tokens: [UInt64] = []
        for (slot, registration) in registrations.enumerated() {
            guard let source = registration.source else { continue }
            // The bits of poll and epoll are the same.
            let events = Int16(truncatingIfNeeded: source.events.rawValue & 0xff)
            requests.append(pollfd(fd: source.descriptor, events: events, revents: 0))
            tokens.append(UInt64(registration.generation) << 32 | UInt64(slot))
        }
        if watchesMainQueue {
            requests.append(pollfd(fd: mainQueue, events: Int16(POLLIN), revents: 0))
            tokens.append(Self.mainQueueToken)
        }
        lock.unlock()
        let count = poll(&requests, nfds_t(requests.count), timeout_ms)
        lock.lock()
        guard count > 0 else { return nil }
        // The one behind the last one served comes first, so that none is always ahead of the others.
        let first = tokens.firstIndex { $0 & 0xffff_ffff > lastPolled } ?? 0
        for index in Array(first..<requests.count) + Array(0..<first) {
            let events = requests[index].revents
            guard events != 0, Int32(events) & POLLNVAL == 0 else { continue }
            lastPolled = tokens[index] & 0xffff_ffff
            return stall_ready(events: UInt32(UInt16(bitPattern: events)), token: tokens[index])
        }
        return nil
    }

    deinit {
        for registration in registrations { closeDuplicate(registration) }
        stall_descriptor_close(epoll)
    }

    func add(_ source: DescriptorSource, slot: UInt32) throws(LoopError) {
        let slot = Int(slot)
        checkSet()
        while registrations.count <= slot {
            registrations.append(Registration(source: nil, descriptor: -1, generation: 0))
        }
        let generation = registrations[slot].generation &+ 1
        let token = UInt64(generation) << 32 | UInt64(slot)
        var descriptor = source.descriptor
        if isBroken || stall_poller_add(epoll, descriptor, source.events.rawValue, token) != 0 {
            // Without a set it is asked for by its own number, and added when there is a set again.
            guard errno == EEXIST || isBroken else {
                throw .system(call: "epoll_ctl", errno: errno)
            }
            if !isBroken { descriptor = stall_descriptor_duplicate(descriptor) }
            guard descriptor >= 0 else { throw .system(call: "fcntl", errno: errno) }
            guard
                isBroken || stall_poller_add(epoll, descriptor, source.events.rawValue, token) == 0
            else {
                let error = errno
                close(descriptor)
                throw .system(call: "epoll_ctl", errno: error)
            }
        }
        registrations[slot] = Registration(
            source: source, descriptor: descriptor, generation: generation)
        descriptorCount += 1
    }

    /// Stops watching. The descriptor may be closed already; then the kernel has forgotten it.
    func remove(slot: UInt32) {
        let slot = Int(slot)
        checkSet()
        if !isBroken { _ = stall_poller_remove(epoll, registrations[slot].descriptor) }
        closeDuplicate(registrations[slot])
        registrations[slot].source = nil
        descriptorCount -= 1
        removals.add(1, ordering: .relaxed)
    }

    func watchMainQueue(_ descriptor: CInt, _ watch: Bool) {
        guard watch != watchesMainQueue else { return }
        checkSet()
        guard !isBroken else { return watchesMainQueue = watch }
        watchesMainQueue = watch
        if watch {
            _ = stall_poller_add(epoll, descriptor, EPOLLIN.rawValue, Self.mainQueueToken)
        } else {
            _ = stall_poller_remove(epoll, descriptor)
        }
    }

    /// As if it had never watched it, without touching the set, which a forked child shares with its parent.
    func forgetMainQueue() { watchesMainQueue = false }

    /// What an event means now; a source that was removed since the kernel reported it means nothing.
    func resolve(_ ready: stall_ready) -> Event {
        switch ready.token {
        case Self.wakeToken: return .nothing
        case Self.mainQueueToken: return .mainQueue
        default:
            let slot = Int(ready.token & 0xffff_ffff)
            guard slot < registrations.count, let source = registrations[slot].source,
                registrations[slot].generation == UInt32(ready.token >> 32)
            else { return .nothing }
            return .descriptor(source)
        }
    }

    /// The number of the set may belong to a file of the app by now.
    private func checkSet() {
        if epoll >= 0, stall_descriptor_is_foreign(epoll) { isBroken = true }
    }

    private func closeDuplicate(_ registration: Registration) {
        guard let source = registration.source, registration.descriptor != source.descriptor,
            stall_descriptor_is_same(registration.descriptor, source.descriptor)
        else { return }
        close(registration.descriptor)
    }
}

extension stall_ready {
    var descriptorEvents: DescriptorEvents { DescriptorEvents(rawValue: events) }
}
