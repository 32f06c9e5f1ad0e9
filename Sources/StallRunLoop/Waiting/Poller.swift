// The epoll set of one mode: the loop's eventfd, its timerfd if it has one, the mode's descriptors, and on the main loop the
// main dispatch queue. One set a mode, so that a descriptor of another mode cannot wake the loop.

internal import CLinux
internal import Glibc
internal import Synchronization

final class Poller {
    /// The source or descriptor of the loop that became ready.
    enum Event {
        /// Nothing that is not looked at anyway: the eventfd or the timerfd.
        case nothing
        case mainQueue
        case descriptor(DescriptorSource)
    }

    private struct Registration {
        var source: DescriptorSource?
        /// Distinguishes a late event for an earlier user of this slot from one for this user.
        var generation: UInt32
        /// The number that is watched for it.
        var number: CInt = -1
        /// The events that the set has for it.
        var watch = Watch.none
        /// The next source of the same descriptor.
        var next: Int?
        /// In the first source of a descriptor: which of them had the last turn.
        var lastTurn = -1
    }

    /// How the set knows of a source.
    private enum Watch: Equatable {
        /// Not at all: there is no set, or its descriptor was closed.
        case none
        /// By the entry of its descriptor, which all sources of that descriptor share.
        case shared
        /// By a descriptor that is always ready, in place of a file, which epoll(7) does not take.
        case substitute(CInt, ticket: UInt32)
    }

    private static let wakeToken = UInt64.max
    private static let mainQueueToken = UInt64.max - 1
    /// The epoll set; -1 when the process had no descriptor for it.
    private(set) var epoll: CInt
    /// It cannot be relied on: a descriptor was missing, or was closed behind the loop's back.
    @exclusivity(unchecked) var isBroken = false
    /// By the slot of the source in its mode.
    @exclusivity(unchecked) private var registrations: [Registration] = []
    /// The first source of each descriptor in the set; the others follow it. The entry has its token.
    @exclusivity(unchecked) private var firstSlots: [CInt: Int] = [:]
    /// How many events came for sources that are gone. Mostly another thread was faster; but if the file of a source lives
    /// on under another number, in this process or a child, the set reports it forever.
    private var lateEvents = 0
    private static let mostLateEvents = 64
    private(set) var watchesMainQueue = false
    /// How many descriptors it watches besides the loop's own.
    private(set) var descriptorCount = 0
    /// The slot that `pollWithoutSet` reported last; with the main queue's token, what is above all slots.
    private var lastPolled: UInt64 = .max
    /// How many it has stopped watching so far. Read without the lock, by handlers of a batch.
    let removals = Atomic<Int>(0)

    /// The descriptors of a loop that its sets watch, and the thread that all are marked for.
    struct Own {
        var wake: CInt
        /// Nil for a loop that waits with a timeout.
        var timer: CInt?
        var thread: pid_t
    }

    /// The thread that the set is marked for.
    private var owner: pid_t

    init(_ own: Own) {
        owner = own.thread
        epoll = stall_descriptor_own_for(stall_poller_create(), own.thread)
        isBroken = !addOwn(own)
    }

    private func addOwn(_ own: Own) -> Bool {
        guard epoll >= 0, addOwn(own.wake) else { return false }
        return own.timer.map { addOwn($0) } ?? true
    }

    /// Watches one of the loop's own descriptors.
    private func addOwn(_ descriptor: CInt) -> Bool {
        let flags = EPOLLIN.rawValue | EPOLLET.rawValue
        return stall_poller_add(epoll, descriptor, flags, Self.wakeToken) == 0
    }

    /// Watches the loop's timer, which it has had to make.
    func addTimer(_ timer: CInt) {
        checkSet()
        guard !isBroken, !addOwn(timer), errno != EEXIST else { return }
        isBroken = true
    }

    /// Is without a set from now on. Its descriptors are closed, unless the number of the set is another file's by now: then the
    /// app may have closed the others as well, and own their numbers.
    func discardSet() {
        let closing = stall_descriptor_is_for(epoll, owner)
        if closing { close(epoll) }
        for slot in registrations.indices {
            if closing, case .substitute(let number, let ticket) = registrations[slot].watch {
                stall_descriptor_close_one(number, ticket)
            }
            registrations[slot].watch = .none
            registrations[slot].next = nil
        }
        epoll = -1
        isBroken = true
        firstSlots = [:]
        lateEvents = 0
    }

    /// Makes a new set with everything that was in the one that was discarded.
    func renew(_ own: Own, mainQueue: CInt) {
        owner = own.thread
        epoll = stall_descriptor_own_for(stall_poller_create(), own.thread)
        isBroken = !addOwn(own)
        guard !isBroken else { return }
        // One whose descriptor is gone as well stays without events, as it would have before.
        for slot in registrations.indices {
            guard let source = registrations[slot].source else { continue }
            let error = watch(slot)
            // There is no descriptor for the source now: the loop tries again, as for its own.
            if error != nil, let opened = source.opened, opened.number < 0 { isBroken = true }
        }
        if watchesMainQueue { addMainQueue(mainQueue) }
    }

    /// If the kernel has no room for it in the set, the loop asks for it by its own number. Where Dispatch has closed it, as behind
    /// dispatchMain(), the number is any file's, and there is nothing to serve.
    private func addMainQueue(_ descriptor: CInt) {
        guard !stall_descriptor_is_lost(descriptor, owner) else { return }
        guard stall_poller_add(epoll, descriptor, EPOLLIN.rawValue, Self.mainQueueToken) != 0 else {
            return
        }
        if [ENOSPC, ENOMEM].contains(errno) { isBroken = true }
    }

    /// The event that is ready, by poll(2): for a loop without a set of its own. Waits at most `timeout_ms`, without
    /// the loop's lock.
    func pollWithoutSet(
        mainQueue: CInt, timeout_ms: CInt, _ lock: borrowing LoopLock
    ) -> stall_ready? {
        var requests: [pollfd] = []
        var tokens: [UInt64] = []
        for slot in registrations.indices {
            guard let source = registrations[slot].source, !source.isOfParent else { continue }
            let waited = source.events
            // It would be ready forever.
            if waited.isEmpty && source.told.load(ordering: .relaxed) != 0 { continue }
            // The bits of poll and epoll are the same.
            let asked = waited.isEmpty ? EPOLLRDHUP.rawValue : waited.rawValue & 0xff
            let events = Int16(truncatingIfNeeded: asked)
            let number = source.numberToWatch()
            guard number >= 0 else { continue }
            requests.append(pollfd(fd: number, events: events, revents: 0))
            tokens.append(token(of: slot))
        }
        if watchesMainQueue && !stall_descriptor_is_lost(mainQueue, owner) {
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
            var ready = stall_ready(
                events: UInt32(UInt16(bitPattern: events)), token: tokens[index])
            if let slot = slot(of: ready), let source = registrations[slot].source,
                source.events.isEmpty
            {
                ready.events = source.untold(ready.events)
                guard ready.events != 0 else { continue }
                claim(ready)
            }
            lastPolled = ready.token & 0xffff_ffff
            return ready
        }
        return nil
    }

    deinit {
        for registration in registrations {
            if case .substitute(let number, let ticket) = registration.watch {
                stall_descriptor_close_one(number, ticket)
            }
        }
        stall_descriptor_close_for(epoll, owner)
    }

    func add(_ source: DescriptorSource, slot: UInt32) throws(LoopError) {
        let slot = Int(slot)
        checkSet()
        while registrations.count <= slot {
            registrations.append(Registration(source: nil, generation: 0))
        }
        let generation = registrations[slot].generation &+ 1
        registrations[slot] = Registration(source: source, generation: generation)
        // Without a set it is asked for by its own number, and added when there is a set again.
        if !isBroken, let error = watch(slot) {
            registrations[slot].source = nil
            throw error
        }
        descriptorCount += 1
    }

    /// Stops watching. The descriptor may be closed already; then the kernel has forgotten it.
    func remove(slot: UInt32) {
        let slot = Int(slot)
        checkSet()
        unwatch(slot)
        registrations[slot].source = nil
        descriptorCount -= 1
        removals.add(1, ordering: .relaxed)
    }

    /// The source in a slot waits for other events now.
    func eventsChanged(slot: UInt32) {
        let slot = Int(slot)
        checkSet()
        guard !isBroken, let source = registrations[slot].source else { return }
        switch registrations[slot].watch {
        case .none: break
        case .shared: _ = changeEntry(of: registrations[slot].number)
        case .substitute(let number, let ticket):
            guard stall_descriptor_is_one(number, ticket) else { break }
            _ = stall_poller_change(epoll, number, readiness(source).rawValue, token(of: slot))
        }
    }

    // MARK: Entries of the set

    /// Makes the set report a source. Returns why the kernel refuses.
    private func watch(_ slot: Int) -> LoopError? {
        guard let source = registrations[slot].source, !source.isOfParent else { return nil }
        let number = source.numberToWatch()
        guard number >= 0 else { return .system(call: "open", errno: errno) }
        registrations[slot].number = number
        if let first = firstSlots[number] {
            registrations[slot].next = first
            firstSlots[number] = slot
            if changeEntry(of: number) {
                registrations[slot].watch = .shared
                return nil
            }
            // The number was closed, and means another file by now: sources of the old one are not notified.
            forgetSources(from: first)
            firstSlots[number] = nil
            registrations[slot].next = nil
        }
        registrations[slot].next = nil
        if stall_poller_add(epoll, number, asked(from: slot), token(of: slot)) == 0 {
            firstSlots[number] = slot
            registrations[slot].watch = .shared
            return nil
        }
        guard errno == EPERM else { return .system(call: "epoll_ctl", errno: errno) }
        return substitute(slot, source)
    }

    /// Reads and writes of a file never wait, so it is always ready.
    private func substitute(_ slot: Int, _ source: DescriptorSource) -> LoopError? {
        let number = stall_ready_descriptor_create()
        let ticket = stall_descriptor_own_one(number)
        guard number >= 0 else { return .system(call: "eventfd", errno: errno) }
        guard stall_poller_add(epoll, number, readiness(source).rawValue, token(of: slot)) == 0
        else {
            let error = errno
            stall_descriptor_close_one(number, ticket)
            return .system(call: "epoll_ctl", errno: error)
        }
        registrations[slot].watch = .substitute(number, ticket: ticket)
        return nil
    }

    /// The events to request of a substitute: readable if the source waits for anything that a file is ready for.
    private func readiness(_ source: DescriptorSource) -> DescriptorEvents {
        source.events.isDisjoint(with: Self.fileEvents) ? [] : .readable
    }

    private static let fileEvents: DescriptorEvents = [.readable, .writable]

    private func unwatch(_ slot: Int) {
        let watched = registrations[slot].number
        switch registrations[slot].watch {
        case .none: return
        case .substitute(let number, let ticket):
            guard stall_descriptor_is_one(number, ticket) else { break }
            if !isBroken { _ = stall_poller_remove(epoll, number) }
            close(number)
        case .shared:
            takeOut(slot, of: watched)
            guard !isBroken else { break }
            if firstSlots[watched] == nil {
                _ = stall_poller_remove(epoll, watched)
            } else {
                _ = changeEntry(of: watched)
            }
        }
        registrations[slot].watch = .none
    }

    /// Takes a source out of the chain of its descriptor.
    private func takeOut(_ slot: Int, of descriptor: CInt) {
        if firstSlots[descriptor] == slot {
            firstSlots[descriptor] = registrations[slot].next
        } else {
            var before = firstSlots[descriptor]
            while let place = before, registrations[place].next != slot {
                before = registrations[place].next
            }
            if let before { registrations[before].next = registrations[slot].next }
        }
        registrations[slot].next = nil
    }

    private func forgetSources(from first: Int) {
        var place: Int? = first
        while let slot = place {
            place = registrations[slot].next
            registrations[slot].watch = .none
            registrations[slot].next = nil
        }
    }

    /// The events to request for the sources of a descriptor, from the first on. The kernel reports a hang-up also to those who
    /// ask for nothing, and they ask for the end of the stream: once, not for as long as it lasts. A new request has it
    /// reported again.
    private func asked(from first: Int) -> UInt32 {
        var events: DescriptorEvents = []
        var waitsForEnd = false
        var place: Int? = first
        while let slot = place {
            if let source = registrations[slot].source {
                let own = source.events
                events.formUnion(own)
                if own.isEmpty && source.untold(EPOLLRDHUP.rawValue) != 0 { waitsForEnd = true }
            }
            place = registrations[slot].next
        }
        let end = waitsForEnd ? EPOLLRDHUP.rawValue : 0
        return (events.isEmpty ? EPOLLET.rawValue : events.rawValue) | end
    }

    /// Gives the entry of a descriptor the events of all its sources, and the token of the first. False when the set has no
    /// such entry.
    private func changeEntry(of descriptor: CInt) -> Bool {
        guard let first = firstSlots[descriptor] else { return false }
        return stall_poller_change(epoll, descriptor, asked(from: first), token(of: first)) == 0
    }

    /// An end is reported to a source that waits for nothing. By a new request the others of its descriptor have their turn, and
    /// one that waits for something is not woken by it again and again.
    private func claim(_ ready: stall_ready) {
        guard let slot = slot(of: ready), let source = registrations[slot].source,
            source.events.isEmpty
        else { return }
        source.told.bitwiseOr(ready.events, ordering: .relaxed)
        let number = registrations[slot].number
        guard !isBroken, registrations[slot].watch == .shared,
            let first = firstSlots[number], registrations[first].next != nil
        else { return }
        _ = changeEntry(of: number)
    }

    private func token(of slot: Int) -> UInt64 {
        UInt64(registrations[slot].generation) << 32 | UInt64(slot)
    }

    func watchMainQueue(_ descriptor: CInt, _ watch: Bool) {
        guard watch != watchesMainQueue else { return }
        checkSet()
        guard !isBroken else { return watchesMainQueue = watch }
        watchesMainQueue = watch
        if watch {
            addMainQueue(descriptor)
        } else {
            _ = stall_poller_remove(epoll, descriptor)
        }
    }

    /// As if it had never watched it, without touching the set, which a forked child shares with its parent.
    func forgetMainQueue() { watchesMainQueue = false }

    /// The meaning of an event now; a source that was removed since it was chosen means nothing.
    func resolve(_ ready: stall_ready) -> Event {
        switch ready.token {
        case Self.wakeToken: return .nothing
        case Self.mainQueueToken: return .mainQueue
        default:
            guard let slot = slot(of: ready), let source = registrations[slot].source else {
                return .nothing
            }
            return .descriptor(source)
        }
    }

    private func slot(of ready: stall_ready) -> Int? {
        let slot = Int(ready.token & 0xffff_ffff)
        guard slot < registrations.count, registrations[slot].source != nil,
            registrations[slot].generation == UInt32(ready.token >> 32)
        else { return nil }
        return slot
    }

    /// The events that the quick way is for; the ends of streams are looked at more closely.
    private static var dataEvents: UInt32 { EPOLLIN.rawValue | EPOLLOUT.rawValue }

    /// Whom an event of the set is for: hands one event for each such source to `body`, with that source's own token. False
    /// when it is not for a source. With `isFinal`, all are served.
    @inline(__always) func forEachSource(
        of ready: stall_ready, isFinal: Bool, _ body: (stall_ready, DescriptorSource) -> Void
    ) -> Bool {
        guard ready.token < Self.mainQueueToken else { return false }
        guard let first = slot(of: ready) else {
            lateEvents += 1
            return true
        }
        if ready.events & Self.dataEvents != 0, registrations[first].next == nil,
            registrations[first].watch == .shared, let source = registrations[first].source
        {
            body(ready, source)
        } else {
            handOut(ready, to: first, isFinal: isFinal, body)
        }
        return true
    }

    @inline(never) private func handOut(
        _ ready: stall_ready, to first: Int, isFinal: Bool,
        _ body: (stall_ready, DescriptorSource) -> Void
    ) {
        if case .substitute = registrations[first].watch, let source = registrations[first].source {
            let events = source.events.intersection(Self.fileEvents).rawValue
            return body(stall_ready(events: events, token: ready.token), source)
        }
        var place: Int? = first
        while let slot = place {
            place = registrations[slot].next
            guard let source = registrations[slot].source else { continue }
            let waited = source.events
            let events =
                waited.isEmpty
                ? source.untold(ready.events)
                : waited.union([.hangUp, .error]).rawValue & ready.events
            guard events != 0 else { continue }
            let own = stall_ready(events: events, token: token(of: slot))
            body(own, source)
            if isFinal { claim(own) }
        }
    }

    /// The meaning of an event of the set in strict delivery. Several sources of one descriptor take turns.
    @inline(__always) func event(_ ready: stall_ready) -> LoopEvent? {
        if ready.token == Self.mainQueueToken { return .mainQueue }
        if ready.token == Self.wakeToken { return nil }
        var chosen: stall_ready?
        var isShared = false
        _ = forEachSource(of: ready, isFinal: false) { own, _ in
            if chosen != nil { isShared = true } else { chosen = own }
        }
        if isShared { chosen = nextTurn(of: ready) }
        if let chosen, chosen.events & Self.dataEvents == 0 { claim(chosen) }
        return chosen.map { .descriptor($0) }
    }

    /// The source behind the one that had the last turn, in the order of their slots; the first one after the last.
    @inline(never) private func nextTurn(of ready: stall_ready) -> stall_ready? {
        guard let first = slot(of: ready) else { return nil }
        let last = registrations[first].lastTurn
        func place(_ ready: stall_ready) -> (Int, Int) {
            let slot = Int(ready.token & 0xffff_ffff)
            return (slot > last ? 0 : 1, slot)
        }
        var chosen = ready
        var isAny = false
        handOut(ready, to: first, isFinal: false) { own, _ in
            if !isAny || place(own) < place(chosen) { chosen = own }
            isAny = true
        }
        registrations[first].lastTurn = Int(chosen.token & 0xffff_ffff)
        return chosen
    }

    /// Whether the set reports a source that is gone, again and again.
    var needsNewSet: Bool { lateEvents >= Self.mostLateEvents }

    /// Whether the number of the set belongs to another file by now. Then nothing may be taken out of it: an event that the app
    /// waits for may be reported once.
    @inline(__always) var isLost: Bool { epoll >= 0 && stall_waiter_is_lost(epoll, owner) }

    private func checkSet() {
        if isLost { isBroken = true }
    }
}

extension stall_ready {
    var descriptorEvents: DescriptorEvents { DescriptorEvents(rawValue: events) }
}
