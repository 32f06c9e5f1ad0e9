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
            try items.add(source, of: self)
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
