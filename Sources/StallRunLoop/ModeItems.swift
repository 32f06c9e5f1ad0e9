// What is in one mode of one loop. Guarded by the loop's lock; makes no callout.

internal import CLinux
internal import Synchronization

final class ModeItems {
    let mode: LoopMode
    /// Whether it is one of the common modes. Read without the lock between blocks: one of them may have changed it.
    private let common: Atomic<Bool>
    /// In calling order.
    @exclusivity(unchecked) private(set) var observers: [LoopObserver] = []
    /// All activities that some observer ever asked for.
    @exclusivity(unchecked) private(set) var observerMask: LoopActivity = []
    @exclusivity(unchecked) private(set) var sources: [LoopSource] = []
    @exclusivity(unchecked) private(set) var descriptors: [DescriptorSource] = []
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
        let made = Poller(wake: loop.wake.descriptor, timer: loop.timerDescriptor)
        poller = made
        epoll = made.epoll
        return made
    }

    /// How many descriptors the mode has lost so far. Any thread.
    @inline(__always) var removals: Int { poller?.removals.load(ordering: .relaxed) ?? 0 }

    /// What an event of the epoll set means now.
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

    func contains(_ observer: LoopObserver) -> Bool { observers.contains { $0 === observer } }
    func contains(_ source: LoopSource) -> Bool { sources.contains { $0 === source } }
    func contains(_ source: DescriptorSource) -> Bool { descriptors.contains { $0 === source } }

    func add(_ observer: LoopObserver) {
        let index = observers.lastIndex { $0.order <= observer.order }
        observers.insert(observer, at: index.map { $0 + 1 } ?? 0)
        observerMask.formUnion(observer.activities)
    }

    func remove(_ observer: LoopObserver) -> Bool {
        guard let index = observers.firstIndex(where: { $0 === observer }) else { return false }
        observers.remove(at: index)
        return true
    }

    func add(_ source: LoopSource) { sources.append(source) }

    func remove(_ source: LoopSource) -> Bool {
        guard let index = sources.firstIndex(where: { $0 === source }) else { return false }
        sources.remove(at: index)
        return true
    }

    func add(_ source: DescriptorSource, of loop: EventRunLoop) throws(LoopError) {
        try makePoller(of: loop).add(source)
        descriptors.append(source)
        pollerHasChanged()
    }

    func remove(_ source: DescriptorSource) -> Bool {
        guard let index = descriptors.firstIndex(where: { $0 === source }) else { return false }
        descriptors.remove(at: index)
        poller?.remove(source)
        pollerHasChanged()
        return true
    }
}
