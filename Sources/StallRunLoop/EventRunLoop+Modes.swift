// What is in which mode. Common items are in every common mode: in those that exist when they are added, and
// in those that become common, or are first used, later.

internal import Synchronization

extension EventRunLoop {
    /// Makes `mode` one of the common modes; all common items are added to it.
    public func addCommonMode(_ mode: LoopMode) {
        guard mode != .common else { return }
        lock.lock()
        let isNew = commonModes.insert(mode).inserted
        let items = items(of: mode)
        items?.isCommon = true
        lock.unlock()
        if items == nil { prepare(mode) } else if isNew { addCommonItems(to: mode) }
    }

    /// Adds an observer to a mode, or to all common modes. Adding it twice changes nothing.
    ///
    /// - Returns: false when the observer is invalid or belongs to another loop.
    @discardableResult
    public func add(_ observer: LoopObserver, toMode mode: LoopMode) -> Bool {
        lock.lock()
        requireAlive()
        guard observer.owner.claim(for: number) else {
            lock.unlock()
            return false
        }
        guard mode != .common else {
            if !commonObservers.contains(where: { $0 === observer }) {
                commonObservers.append(observer)
            }
            let common = commonModesInUse()
            lock.unlock()
            for mode in common { add(observer, toMode: mode) }
            return true
        }
        let items = itemsToAdd(to: mode)
        if !items.contains(observer) {
            items.add(observer)
            observer.modeCount += 1
        }
        lock.unlock()
        return true
    }

    /// Adds a timer to a mode, or to all common modes. Adding it twice changes nothing.
    ///
    /// - Returns: false when the timer is invalid or belongs to another loop.
    @discardableResult
    public func add(_ timer: LoopTimer, toMode mode: LoopMode) -> Bool {
        lock.lock()
        requireAlive()
        guard timer.owner.claim(for: number) else {
            lock.unlock()
            return false
        }
        guard mode != .common else {
            if !commonTimers.contains(where: { $0 === timer }) { commonTimers.append(timer) }
            let common = commonModesInUse()
            lock.unlock()
            for mode in common { add(timer, toMode: mode) }
            return true
        }
        let items = mode == .default ? defaultItems : itemsToAdd(to: mode)
        var mayFireFirst = false
        if timer.places.isEmpty || !timer.places.contains(items.timers) {
            let slot = items.timers.pointee.insert(timer, deadline: timer.deadline)
            if timer.isFiring { items.timers.pointee.suspend(slot) }
            timer.places.append(items.timers, slot)
            // Behind timers with a tolerance, also one that is not the earliest may be the first to wake for.
            mayFireFirst =
                items.timers.pointee.earliest == timer.deadline || items.timers.pointee.hasTolerance
        }
        lock.unlock()
        if mayFireFirst { wake.nudge() }
        return true
    }

    /// Adds a source to a mode, or to all common modes, and calls its schedule handler for each. Adding it
    /// twice changes nothing. Does not wake the loop.
    ///
    /// - Returns: false when the source is invalid.
    @discardableResult
    public func add(_ source: LoopSource, toMode mode: LoopMode) -> Bool {
        lock.lock()
        requireAlive()
        guard mode != .common else {
            guard source.isValid else {
                lock.unlock()
                return false
            }
            if !commonSources.contains(where: { $0 === source }) { commonSources.append(source) }
            let common = commonModesInUse()
            lock.unlock()
            for mode in common { add(source, toMode: mode) }
            return true
        }
        let items = itemsToAdd(to: mode)
        let isNew =
            !items.contains(source)
            && source.owners.withLock { claim(&$0, isValid: source.validity) }
        if isNew { items.add(source) }
        lock.unlock()
        if isNew { source.onSchedule?(self, mode) }
        return true
    }

    /// Adds a descriptor to a mode, or to all common modes. Adding it twice changes nothing. A loop that sleeps
    /// in that mode notices it at once.
    ///
    /// - Returns: false when the source is invalid.
    /// - Throws: ``LoopError/system(call:errno:)`` when the kernel cannot watch the descriptor: it is not open
    ///   (`EBADF`), or a plain file, which is always ready (`EPERM`).
    @discardableResult
    public func add(_ source: DescriptorSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        lock.lock()
        requireAlive()
        guard mode != .common else {
            let common = source.isValid ? commonModesInUse() : []
            lock.unlock()
            guard !common.isEmpty else { return false }
            do {
                for mode in common { try add(source, toMode: mode) }
            } catch {
                for mode in common { remove(source, fromMode: mode) }
                throw error
            }
            lock.lock()
            if !commonDescriptors.contains(where: { $0 === source }) {
                commonDescriptors.append(source)
            }
            lock.unlock()
            return true
        }
        defer { lock.unlock() }
        let items = itemsToAdd(to: mode)
        guard !items.contains(source) else { return true }
        guard source.owners.withLock({ claim(&$0, isValid: source.validity) }) else { return false }
        do {
            try items.add(source, to: items.poller(of: self))
        } catch {
            source.owners.withLock { disclaim(&$0) }
            throw error
        }
        return true
    }

    /// Removes an observer from a mode, or from the common items. It may be added again.
    public func remove(_ observer: LoopObserver, fromMode mode: LoopMode) {
        lock.lock()
        if mode == .common {
            let wasCommon = commonObservers.contains { $0 === observer }
            commonObservers.removeAll { $0 === observer }
            if wasCommon { for mode in commonModesInUse() { removeLocked(observer, from: mode) } }
        } else {
            removeLocked(observer, from: mode)
        }
        lock.unlock()
    }

    /// Removes a timer from a mode, or from the common items. It may be added again.
    public func remove(_ timer: LoopTimer, fromMode mode: LoopMode) {
        lock.lock()
        if mode == .common {
            let wasCommon = commonTimers.contains { $0 === timer }
            commonTimers.removeAll { $0 === timer }
            if wasCommon { for mode in commonModesInUse() { removeLocked(timer, from: mode) } }
        } else {
            removeLocked(timer, from: mode)
        }
        lock.unlock()
    }

    /// Removes a source from a mode, or from the common items, and calls its cancel handler for each mode it
    /// leaves. A signal that was not yet served is kept. It may be added again.
    public func remove(_ source: LoopSource, fromMode mode: LoopMode) {
        lock.lock()
        var left: [LoopMode] = []
        if mode == .common {
            let wasCommon = commonSources.contains { $0 === source }
            commonSources.removeAll { $0 === source }
            if wasCommon { left = commonModesInUse().filter { removeLocked(source, from: $0) } }
        } else if removeLocked(source, from: mode) {
            left = [mode]
        }
        lock.unlock()
        for mode in left { source.onCancel?(self, mode) }
    }

    /// Removes a descriptor from a mode, or from the common items. It may be added again.
    public func remove(_ source: DescriptorSource, fromMode mode: LoopMode) {
        lock.lock()
        if mode == .common {
            let wasCommon = commonDescriptors.contains { $0 === source }
            commonDescriptors.removeAll { $0 === source }
            if wasCommon { for mode in commonModesInUse() { removeLocked(source, from: mode) } }
        } else {
            removeLocked(source, from: mode)
        }
        lock.unlock()
    }

    /// Whether an observer is in a mode, or among the common items.
    public func contains(_ observer: LoopObserver, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        if mode == .common { return commonObservers.contains { $0 === observer } }
        return items(of: mode)?.contains(observer) ?? false
    }

    /// Whether a timer is in a mode, or among the common items.
    public func contains(_ timer: LoopTimer, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        if mode == .common { return commonTimers.contains { $0 === timer } }
        guard let items = items(of: mode) else { return false }
        return timer.places.contains(items.timers)
    }

    /// Whether a source is in a mode, or among the common items.
    public func contains(_ source: LoopSource, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        if mode == .common { return commonSources.contains { $0 === source } }
        return items(of: mode)?.contains(source) ?? false
    }

    /// Whether a descriptor is in a mode, or among the common items.
    public func contains(_ source: DescriptorSource, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        if mode == .common { return commonDescriptors.contains { $0 === source } }
        return items(of: mode)?.contains(source) ?? false
    }
}

// MARK: - With the lock held

extension EventRunLoop {
    private func requireAlive() {
        precondition(!isDead, "nothing can be added to a run loop whose thread has ended")
    }

    /// Takes an item that may be in several loops: one entry a mode. `invalidate()` clears the validity before it looks at
    /// the owners, so one of the two always sees the other.
    private func claim(_ owners: inout [EventRunLoop], isValid: borrowing Atomic<Bool>) -> Bool {
        guard isValid.load(ordering: .acquiring) else { return false }
        owners.append(self)
        return true
    }

    private func disclaim(_ owners: inout [EventRunLoop]) {
        if let index = owners.firstIndex(where: { $0 === self }) { owners.remove(at: index) }
    }

    /// The common modes that exist here. The tracking mode exists from its first use.
    private func commonModesInUse() -> [LoopMode] { commonModes.filter { items(of: $0) != nil } }

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

    func removeFromAllModes(_ timer: LoopTimer) {
        lock.lock()
        timer.places.leave(timer)
        timer.owner.disclaim()
        if !commonTimers.isEmpty { commonTimers.removeAll { $0 === timer } }
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

    private func addCommonItems(to mode: LoopMode) {
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
