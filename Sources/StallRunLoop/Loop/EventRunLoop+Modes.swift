// The items of each mode. Common items are in every common mode: in those that exist when they are added, and in those
// that become common, or are first used, later.

internal import CLinux
public import StallModel
internal import Synchronization

extension EventRunLoop {
    /// Makes `mode` one of the common modes; all common items are added to it.
    public func addCommonMode(_ mode: LoopMode) {
        guard mode != .common else { return }
        lock.lock()
        defer { lock.unlock() }
        guard !isDead else { return }
        let isNew = commonModes.insert(mode).inserted
        if let items = items(of: mode) {
            items.isCommon = true
            if isNew { addCommonItems(to: items) }
        } else {
            _ = itemsToAdd(to: mode)
        }
    }

    /// The modes that exist: those that were run, or that something was added to, the default mode first. A common mode
    /// exists from its first use. The result of `CFRunLoopCopyAllModes`.
    public var allModes: [LoopMode] {
        lock.lock()
        defer { lock.unlock() }
        return modes.map(\.mode)
    }

    /// The instant at which the next timer of a mode is due, without its tolerance; nil when the mode has none. The
    /// result of `CFRunLoopGetNextTimerFireDate`. A repeating timer whose handler runs counts with its next call; to
    /// find it, all timers of the mode are read.
    public func nextTimerFire(inMode mode: LoopMode = .default) -> MonotonicInstant? {
        lock.lock()
        defer { lock.unlock() }
        guard let timers = items(of: mode)?.timers else { return nil }
        var earliest = timers.pointee.earliest
        if timers.pointee.isAnyFiring {
            let now = stall_monotonic_ns()
            for timer in timers.pointee.firing() where timer.isValid && timer.repeats {
                earliest = min(earliest, timer.nextCall(after: now))
            }
        }
        return earliest == .max ? nil : MonotonicInstant(nanoseconds: earliest)
    }

    /// Adds an observer to a mode, or to all common modes. Adding it twice changes nothing.
    ///
    /// - Returns: false when the observer is invalid or belongs to another loop, and when the loop's thread has ended.
    @discardableResult
    public func add(_ observer: LoopObserver, toMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        let items = mode == .common ? nil : itemsToAdd(to: mode)
        guard !isDead, observer.owner.claim(for: number) else { return false }
        if let items {
            addLocked(observer, to: items)
            return true
        }
        if !observer.places.contains(where: { $0.mode == .common }) {
            observer.places.append((.common, commonObservers.append(observer)))
        }
        let known = Set(observer.places.map(\.mode))
        for items in commonModeItems where !known.contains(items.mode) {
            observer.places.append((items.mode, items.add(observer)))
        }
        return true
    }

    /// Adds a timer to a mode, or to all common modes. Adding it twice changes nothing.
    ///
    /// - Returns: false when the timer is invalid or belongs to another loop, and when the loop's thread has ended.
    @discardableResult
    public func add(_ timer: LoopTimer, toMode mode: LoopMode) -> Bool {
        lock.lock()
        if mode == .default {
            let isTaken = !isDead && timer.owner.claim(for: number)
            let mayFireFirst = isTaken && addLocked(timer, to: defaultItems)
            lock.unlock()
            if mayFireFirst { wake.nudge() }
            return isTaken
        }
        let items = mode == .common ? nil : itemsToAdd(to: mode)
        guard !isDead, timer.owner.claim(for: number) else {
            lock.unlock()
            return false
        }
        var mayFireFirst = false
        if let items {
            mayFireFirst = addLocked(timer, to: items)
        } else {
            if timer.commonSlot == ItemList<LoopTimer>.none {
                timer.commonSlot = commonTimers.append(timer)
            }
            let known = timer.places.heaps
            for items in commonModeItems
            where !known.contains(items.timers) && insertLocked(timer, in: items) {
                mayFireFirst = true
            }
        }
        lock.unlock()
        if mayFireFirst { wake.nudge() }
        return true
    }

    /// Adds a source to a mode, or to all common modes, and calls its schedule handler for each. Adding it
    /// twice changes nothing. Does not wake the loop.
    ///
    /// - Returns: false when the source is invalid, and when the loop's thread has ended.
    @discardableResult
    public func add(_ source: LoopSource, toMode mode: LoopMode) -> Bool {
        lock.lock()
        let only = mode == .common ? nil : itemsToAdd(to: mode)
        guard !isDead, source.isValid else {
            lock.unlock()
            return false
        }
        var scheduled: [LoopMode] = []
        if let only {
            if addLocked(source, to: only) && source.tellsSchedule { scheduled = [mode] }
        } else {
            source.places.withLock { places in
                guard source.isValid, !places.contains(.common, of: self) else { return }
                let slot = commonSources.append(source)
                places.append(ItemPlace(self, .common, slot: slot, items: nil))
            }
            let known = source.places.withLock { $0.modes(of: self) }
            for items in commonModeItems
            where !known.contains(items.mode) && insertLocked(source, in: items)
                && source.tellsSchedule
            {
                scheduled.append(items.mode)
            }
        }
        lock.unlock()
        for mode in scheduled { source.wasScheduled(in: self, mode) }
        return true
    }

    /// Adds a descriptor to a mode, or to all common modes. Adding it twice changes nothing. A loop that sleeps
    /// in that mode notices it at once.
    ///
    /// - Returns: false when the source is invalid, and when the loop's thread has ended.
    /// - Throws: ``LoopError/system(call:errno:)`` when the kernel cannot watch the descriptor, because it is not open
    ///   (`EBADF`), or has no memory or room for another one (`ENOMEM`, `ENOSPC`).
    @discardableResult
    public func add(_ source: DescriptorSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        let only = mode == .common ? nil : itemsToAdd(to: mode)
        guard !isDead, source.isValid else { return false }
        if let only {
            _ = try addLocked(source, to: only)
            return source.isValid
        }
        var added: [LoopMode] = []
        let known = source.places.withLock { $0.modes(of: self) }
        do throws(LoopError) {
            for items in commonModeItems where !known.contains(items.mode) {
                if try insertLocked(source, in: items) { added.append(items.mode) }
            }
        } catch {
            for mode in added { removeLocked(source, from: mode) }
            throw error
        }
        return source.places.withLock { places in
            guard source.isValid else { return false }
            if !places.contains(.common, of: self) {
                let slot = commonDescriptors.append(source)
                places.append(ItemPlace(self, .common, slot: slot, items: nil))
            }
            return true
        }
    }

    /// Removes an observer from a mode, or from the common items. It may be added again.
    public func remove(_ observer: LoopObserver, fromMode mode: LoopMode) {
        lock.lock()
        defer { lock.unlock() }
        guard observer.owner.loopNumber == number else { return }
        removeLocked(observer, from: mode)
    }

    /// Removes a timer from a mode, or from the common items. It may be added again.
    public func remove(_ timer: LoopTimer, fromMode mode: LoopMode) {
        lock.lock()
        defer { lock.unlock() }
        guard timer.owner.loopNumber == number else { return }
        if mode != .common {
            if let items = items(of: mode) { removeLocked(timer, from: items) }
        } else if timer.commonSlot != ItemList<LoopTimer>.none {
            removeFromCommon(timer)
            let common = Set(commonModeItems.map(\.timers))
            timer.places.leave(timer, where: common.contains)
            if timer.places.isEmpty { timer.owner.disclaim() }
        }
    }

    /// Removes a source from a mode, or from the common items, and calls its cancel handler for each mode it
    /// leaves. A signal that was not yet served is kept. It may be added again.
    public func remove(_ source: LoopSource, fromMode mode: LoopMode) {
        lock.lock()
        var left: [LoopMode] = []
        if mode != .common {
            if removeLocked(source, from: mode) { left = [mode] }
        } else {
            source.places.withLock({ $0.removeCommon(of: self) }).forEach { place in
                guard let items = place.items else { return commonSources.remove(place.slot) }
                items._withUnsafeGuaranteedRef { $0.removeSource(place.slot) }
                left.append(place.mode)
            }
        }
        lock.unlock()
        for mode in left { source.wasCancelled(in: self, mode) }
    }

    /// Removes a descriptor from a mode, or from the common items. It may be added again. On another thread than the
    /// loop's, its handler may be called once more after this has returned.
    public func remove(_ source: DescriptorSource, fromMode mode: LoopMode) {
        lock.lock()
        defer { lock.unlock() }
        guard mode == .common else { return removeLocked(source, from: mode) }
        source.places.withLock({ $0.removeCommon(of: self) }).forEach { place in
            guard let items = place.items else { return commonDescriptors.remove(place.slot) }
            items._withUnsafeGuaranteedRef { $0.removeDescriptor(place.slot) }
        }
    }

    /// Whether an observer is in a mode, or among the common items.
    public func contains(_ observer: LoopObserver, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return observer.owner.loopNumber == number
            && observer.places.contains { $0.mode == mode }
    }

    /// Whether a timer is in a mode, or among the common items.
    public func contains(_ timer: LoopTimer, inMode mode: LoopMode) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard timer.owner.loopNumber == number else { return false }
        if mode == .common { return timer.commonSlot != ItemList<LoopTimer>.none }
        guard let items = items(of: mode) else { return false }
        return timer.places.contains(items.timers)
    }

    /// Whether a source is in a mode, or among the common items.
    public func contains(_ source: LoopSource, inMode mode: LoopMode) -> Bool {
        source.places.withLock { $0.contains(mode, of: self) }
    }

    /// Whether a descriptor is in a mode, or among the common items.
    public func contains(_ source: DescriptorSource, inMode mode: LoopMode) -> Bool {
        source.places.withLock { $0.contains(mode, of: self) }
    }
}
