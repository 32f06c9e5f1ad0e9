// Moving items in and out of modes, with the loop's lock held; then what takes the lock itself: invalidated items leave
// all modes, common items enter new common modes.

internal import Synchronization

extension EventRunLoop {
    func requireAlive() {
        precondition(!isDead, "nothing can be added to a run loop whose thread has ended")
    }

    /// Takes an item that may be in several loops: one entry a mode. `invalidate()` clears the validity before it looks at
    /// the owners, so one of the two always sees the other.
    func claim(_ owners: inout [EventRunLoop], isValid: borrowing Atomic<Bool>) -> Bool {
        guard isValid.load(ordering: .acquiring) else { return false }
        owners.append(self)
        return true
    }

    func disclaim(_ owners: inout [EventRunLoop]) {
        if let index = owners.firstIndex(where: { $0 === self }) { owners.remove(at: index) }
    }

    /// The common modes that exist here. The tracking mode exists from its first use.
    func commonModesInUse() -> [LoopMode] { commonModes.filter { items(of: $0) != nil } }

    /// The items of a mode that exists. There are few modes, so each is looked at; the default mode at once.
    @inline(__always) func items(of mode: LoopMode) -> ModeItems? {
        mode == .default ? defaultItems : modes.first { $0.mode == mode }
    }

    /// The items of a mode, which comes to exist. Lets go of the lock to add the common items to a new common mode.
    func itemsToAdd(to mode: LoopMode) -> ModeItems {
        if let items = items(of: mode) { return items }
        let items = ModeItems(mode, isCommon: commonModes.contains(mode))
        modes.append(items)
        if items.isCommon {
            lock.unlock()
            addCommonItems(to: mode)
            lock.lock()
        }
        return items
    }

    @discardableResult
    func removeLocked(_ observer: LoopObserver, from mode: LoopMode) -> Bool {
        guard let items = items(of: mode), items.remove(observer) else { return false }
        observer.modeCount -= 1
        if observer.modeCount == 0 { observer.owner.disclaim() }
        return true
    }

    @discardableResult
    func removeLocked(_ timer: LoopTimer, from mode: LoopMode) -> Bool {
        guard let items = items(of: mode), let slot = timer.places.remove(items.timers)
        else { return false }
        items.timers.pointee.remove(slot, of: timer)
        if timer.places.isEmpty { timer.owner.disclaim() }
        return true
    }

    /// Takes a timer out of all modes for good; false when it belongs to another loop, or to none. The caller keeps it
    /// alive until the lock is released.
    func invalidateLocked(_ timer: LoopTimer) -> Bool {
        guard timer.owner.loopNumber == number else { return false }
        timer.places.leave(timer)
        if !commonTimers.isEmpty { commonTimers.removeAll { $0 === timer } }
        timer.owner.invalidateOwned()
        return true
    }

    @discardableResult
    func removeLocked(_ source: LoopSource, from mode: LoopMode) -> Bool {
        guard let items = items(of: mode), items.remove(source) else { return false }
        source.owners.withLock { disclaim(&$0) }
        return true
    }

    @discardableResult
    func removeLocked(_ source: DescriptorSource, from mode: LoopMode) -> Bool {
        guard let items = items(of: mode), items.remove(source) else { return false }
        source.owners.withLock { disclaim(&$0) }
        return true
    }
}

// MARK: - Invalidation and common items

extension EventRunLoop {
    func removeFromAllModes(_ observer: LoopObserver) {
        lock.lock()
        for mode in modes.map(\.mode) { removeLocked(observer, from: mode) }
        commonObservers.removeAll { $0 === observer }
        lock.unlock()
    }

    func removeFromAllModes(_ source: LoopSource) {
        lock.lock()
        let left = modes.map(\.mode).filter { removeLocked(source, from: $0) }
        commonSources.removeAll { $0 === source }
        lock.unlock()
        for mode in left { source.onCancel?(self, mode) }
    }

    func removeFromAllModes(_ source: DescriptorSource) {
        lock.lock()
        for mode in modes.map(\.mode) { removeLocked(source, from: mode) }
        commonDescriptors.removeAll { $0 === source }
        lock.unlock()
    }

    /// Makes a common mode exist, with the common items in it.
    func prepare(_ mode: LoopMode) {
        lock.lock()
        if commonModes.contains(mode) { _ = itemsToAdd(to: mode) }
        lock.unlock()
    }

    func addCommonItems(to mode: LoopMode) {
        lock.lock()
        let (observers, timers, sources, descriptors) =
            (commonObservers, commonTimers, commonSources, commonDescriptors)
        lock.unlock()
        for observer in observers { add(observer, toMode: mode) }
        for timer in timers { add(timer, toMode: mode) }
        for source in sources { add(source, toMode: mode) }
        for source in descriptors { _ = try? add(source, toMode: mode) }
    }
}
