// The items of one mode of one loop. Guarded by the loop's lock; makes no callout.

internal import CLinux
internal import Synchronization

final class ModeItems {
    let mode: LoopMode
    /// Whether it is one of the common modes. Read without the lock between blocks: one of them may have changed it.
    private let common: Atomic<Bool>
    @exclusivity(unchecked) private(set) var observers = ItemList<LoopObserver>()
    /// The same by their order; nil when one came or went since it was last needed.
    @exclusivity(unchecked) private var observersInOrder: [LoopObserver]? = []
    /// All activities that an observer asked for since there was none.
    @exclusivity(unchecked) private(set) var observerMask: LoopActivity = []
    @exclusivity(unchecked) private(set) var sources = ItemList<LoopSource>()
    /// The slots of sources that may be signalled. A source's ticket says whether it is; a slot may be free by now.
    private let signals = Locked(NotedSlots())
    private let hasSignals = Atomic<Bool>(false)
    @exclusivity(unchecked) private var areSignalsHeldForFork = false
    @exclusivity(unchecked) private(set) var descriptors = ItemList<DescriptorSource>()
    /// At a fixed address: timers point to the heaps they are in.
    let timers: UnsafeMutablePointer<TimerHeap>
    /// Made when the mode first sleeps or gets a descriptor.
    @exclusivity(unchecked) private(set) var poller: Poller?
    /// The poller's descriptor; -1 without one.
    @exclusivity(unchecked) private var epoll: CInt = -1
    /// Whether readiness can be learnt only from the kernel.
    @exclusivity(unchecked) private(set) var needsPolling = false

    init(_ mode: LoopMode, isCommon: Bool) {
        self.mode = mode
        common = Atomic(isCommon)
        timers = .allocate(capacity: 1)
        timers.initialize(to: TimerHeap())
    }

    deinit {
        timers.deinitialize(count: 1)
        timers.deallocate()
    }

    @inline(__always) var isCommon: Bool {
        get { common.load(ordering: .relaxed) }
        set { common.store(newValue, ordering: .relaxed) }
    }

    /// No source and no timer.
    var isEmpty: Bool { sources.isEmpty && descriptors.isEmpty && timers.pointee.count == 0 }

    /// The epoll set, made if there is none.
    @inline(__always) func epoll(of loop: EventRunLoop) -> CInt {
        epoll >= 0 ? epoll : makePoller(of: loop).epoll
    }

    private func makePoller(of loop: EventRunLoop) -> Poller {
        if let poller { return poller }
        let made = Poller(loop.ownDescriptors)
        poller = made
        epoll = made.epoll
        return made
    }

    /// Makes a new epoll set, after the loop's own descriptors. The old one was discarded.
    func renewPoller(of loop: EventRunLoop) {
        guard let poller else { return }
        poller.renew(loop.ownDescriptors, mainQueue: loop.mainQueueDescriptor)
        epoll = poller.epoll
    }

    /// The epoll set if it watches the main queue: -1 if it cannot be relied on. Without a reference to the poller.
    @inline(__always) var setWithMainQueue: CInt? {
        guard let poller else { return nil }
        return Unmanaged.passUnretained(poller)._withUnsafeGuaranteedRef {
            $0.watchesMainQueue ? ($0.isBroken ? -1 : $0.epoll) : nil
        }
    }

    /// How many descriptors the mode has lost so far. Any thread.
    @inline(__always) var removals: Int { poller?.removals.load(ordering: .relaxed) ?? 0 }

    /// The meaning of an event of the epoll set in strict delivery; nil for nothing.
    @inline(__always) func event(_ ready: stall_ready) -> LoopEvent? { poller?.event(ready) }

    /// The source in a slot waits for other events now.
    func eventsChanged(slot: UInt32) { poller?.eventsChanged(slot: slot) }

    /// Takes a new epoll set if the old one reports sources that are gone.
    @inline(__always) func renewPollerIfNeeded(of loop: EventRunLoop) {
        if poller?.needsNewSet == true { replacePoller(of: loop) }
    }

    /// Makes a new epoll set, and closes the old one.
    func replacePoller(of loop: EventRunLoop) {
        poller?.discardSet()
        renewPoller(of: loop)
    }

    /// The meaning of an event of the epoll set now.
    func resolve(_ ready: stall_ready) -> Poller.Event { poller?.resolve(ready) ?? .nothing }

    private func pollerHasChanged() {
        needsPolling = poller.map { $0.descriptorCount > 0 || $0.watchesMainQueue } ?? false
    }

    /// Serves the main queue in this mode, or not.
    func watchMainQueue(_ watch: Bool, of loop: EventRunLoop) {
        guard watch || poller != nil else { return }
        makePoller(of: loop).watchMainQueue(loop.mainQueueDescriptor, watch)
        pollerHasChanged()
    }

    // MARK: Observers

    func add(_ observer: LoopObserver) -> UInt32 {
        observersInOrder = nil
        observerMask.formUnion(observer.activities)
        return observers.append(observer)
    }

    func removeObserver(_ slot: UInt32) {
        observersInOrder = nil
        observers.remove(slot)
        if observers.isEmpty { observerMask = [] }
    }

    /// The observers in calling order: by their order, then as they were added.
    func orderedObservers() -> [LoopObserver] {
        if let observersInOrder { return observersInOrder }
        var ordered = Array(observers)
        if let first = ordered.first, ordered.contains(where: { $0.order != first.order }) {
            ordered = ordered.enumerated()
                .sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }
                .map(\.element)
        }
        observersInOrder = ordered
        return ordered
    }

    // MARK: Sources

    /// Adds a source. With its `owners` locked, so that a signal is either seen here or sees the new place.
    func add(_ source: LoopSource) -> UInt32 {
        let slot = sources.append(source)
        if source.isSignalled { noteSignal(of: slot) }
        return slot
    }

    func removeSource(_ slot: UInt32) { sources.remove(slot) }

    /// Remembers that the source in a slot was signalled. Any thread, without the loop's lock.
    func noteSignal(of slot: UInt32) {
        signals.withLock {
            $0.note(slot)
            hasSignals.store(true, ordering: .releasing)
        }
    }

    /// Whether a source may have been signalled since the last pass.
    @inline(__always) var mayHaveSignals: Bool { hasSignals.load(ordering: .acquiring) }

    /// Whether a source is signalled now. Forgets those that were, and are gone or served. With the loop's lock.
    var isAnySignalled: Bool {
        guard mayHaveSignals else { return false }
        return signals.withLock { noted in
            noted.removeAll { signalledSource(in: $0) == nil }
            if noted.slots.isEmpty { hasSignals.store(false, ordering: .relaxed) }
            return !noted.slots.isEmpty
        }
    }

    /// The sources that are signalled now, by order and then by the time of their signal. They stay noted until a later
    /// pass finds them served: a run that is nested in one of them may serve the others. A source is signalled before
    /// it is noted, so one that is found not to be, with the notes locked, will be noted again.
    func signalledSources() -> [SignalledSource] {
        var found: [SignalledSource] = []
        var (isInOrder, last) = (true, (order: Int.min, ticket: UInt64(0)))
        signals.withLock { noted in
            found.reserveCapacity(noted.slots.count)
            noted.removeAll { slot in
                guard let signal = signalledSource(in: slot) else { return true }
                let place = (order: signal.source.order, ticket: signal.ticket)
                if place < last { isInOrder = false }
                last = place
                found.append(signal)
                return false
            }
            if found.isEmpty { hasSignals.store(false, ordering: .relaxed) }
        }
        if !isInOrder {
            found.sort { ($0.source.order, $0.ticket) < ($1.source.order, $1.ticket) }
        }
        return found
    }

    /// The source that is signalled, when only one is noted: the common case, without an allocation. Nil when there are
    /// more; then, or when it has been served, `mayHaveSignals` says whether to ask for all.
    func onlySignalledSource() -> LoopSource? {
        signals.withLock { noted in
            guard noted.slots.count == 1 else { return nil }
            if let signal = signalledSource(in: noted.slots[0]) { return signal.source }
            noted.removeAll { _ in true }
            hasSignals.store(false, ordering: .relaxed)
            return nil
        }
    }

    private func signalledSource(in slot: UInt32) -> SignalledSource? {
        guard let source = sources[slot] else { return nil }
        let ticket = source.signalTicket.load(ordering: .acquiring)
        return ticket == 0 ? nil : SignalledSource(source: source, ticket: ticket, slot: slot)
    }

    // MARK: Descriptors

    func add(_ source: DescriptorSource, of loop: EventRunLoop) throws(LoopError) -> UInt32 {
        let slot = descriptors.append(source)
        do { try makePoller(of: loop).add(source, slot: slot) } catch {
            descriptors.remove(slot)
            throw error
        }
        pollerHasChanged()
        return slot
    }

    func removeDescriptor(_ slot: UInt32) {
        descriptors.remove(slot)
        poller?.remove(slot: slot)
        pollerHasChanged()
    }

    // MARK: Fork

    /// Keeps other threads from leaving the signals half changed in a child; see ``ForkHandlers``.
    func holdForFork() { areSignalsHeldForFork = signals.lockForFork() }

    /// In parent and child.
    func letGoAfterFork() {
        if areSignalsHeldForFork { signals.unlockAfterFork() }
        areSignalsHeldForFork = false
    }

    /// In the child: the main queue is the parent's.
    func forgetMainQueue() {
        poller?.forgetMainQueue()
        pollerHasChanged()
    }

    // MARK: The end

    /// Removes everything, because the loop's thread has ended. The items that are returned are dropped without the
    /// loop's lock.
    func removeAll() -> [AnyObject] {
        var contents: [AnyObject] = Array(observers) + Array(sources) + Array(descriptors)
        if let poller { contents.append(poller) }
        timers.pointee.forEach { contents.append($0) }
        observers = ItemList()
        observersInOrder = []
        sources = ItemList()
        descriptors = ItemList()
        poller = nil
        epoll = -1
        timers.pointee = TimerHeap()
        return contents
    }
}
