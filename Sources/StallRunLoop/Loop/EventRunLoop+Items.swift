// Moving items in and out of modes, with the loop's lock held; then what takes the lock itself: invalidated items leave
// all modes.

internal import Synchronization

extension EventRunLoop {
    /// The items of a mode that exists. A few modes are looked at in turn, the default mode at once.
    @inline(__always) func items(of mode: LoopMode) -> ModeItems? {
        if mode == .default { return defaultItems }
        if modes.count > Self.fewModes { return modesByName[mode] }
        return modes.first { $0.mode == mode }
    }

    private static var fewModes: Int { 8 }

    /// The items of a mode, which comes to exist. Releases the lock to schedule the common sources of a new common
    /// mode.
    func itemsToAdd(to mode: LoopMode) -> ModeItems {
        if let items = items(of: mode) { return items }
        let items = ModeItems(mode, isCommon: commonModes.contains(mode))
        modes.append(items)
        if modes.count > Self.fewModes {
            if modesByName.isEmpty {
                for known in modes { modesByName[known.mode] = known }
            }
            modesByName[mode] = items
        }
        if items.isCommon { addCommonItems(to: items) }
        return items
    }

    /// Makes an existing mode one of the common ones. Releases the lock to schedule sources.
    func addCommonItems(to items: ModeItems) {
        commonModeItems.append(items)
        for observer in commonObservers { addLocked(observer, to: items) }
        for timer in commonTimers { addLocked(timer, to: items) }
        for source in commonDescriptors { _ = try? addLocked(source, to: items) }
        let scheduled = commonSources.filter { addLocked($0, to: items) && $0.tellsSchedule }
        if !commonTimers.isEmpty { wake.nudge() }
        guard !scheduled.isEmpty else { return }
        lock.unlock()
        for source in scheduled { source.wasScheduled(in: self, items.mode) }
        lock.lock()
    }

    // MARK: Adding

    func addLocked(_ observer: LoopObserver, to items: ModeItems) {
        guard !observer.places.contains(where: { $0.mode == items.mode }) else { return }
        observer.places.append((items.mode, items.add(observer)))
    }

    /// Whether the loop may have to wake up earlier because of it.
    @discardableResult
    @inline(__always) func addLocked(_ timer: LoopTimer, to items: ModeItems) -> Bool {
        guard timer.places.isEmpty || !timer.places.contains(items.timers) else { return false }
        return insertLocked(timer, in: items)
    }

    /// The same for a mode that it is not in.
    @inline(__always) func insertLocked(_ timer: LoopTimer, in items: ModeItems) -> Bool {
        let slot = items.timers.pointee.insert(timer, deadline: timer.deadline)
        if timer.isFiring { items.timers.pointee.suspend(slot) }
        timer.places.append(items.timers, slot)
        // Behind timers with a tolerance, also one that is not the earliest may be the first to wake for.
        return items.timers.pointee.earliest == timer.deadline || items.timers.pointee.hasTolerance
    }

    /// False when it is there already, or invalid. `invalidate()` clears the validity before it looks at the places, so
    /// one of the two always sees the other.
    func addLocked(_ source: LoopSource, to items: ModeItems) -> Bool {
        source.places.withLock { places in
            guard source.isValid, !places.contains(items.mode, of: self) else {
                return false
            }
            places.append(ItemPlace(self, items.mode, slot: items.add(source), items: items))
            return true
        }
    }

    /// The same for a mode that it is not in. Only with the loop's lock does it come into one.
    func insertLocked(_ source: LoopSource, in items: ModeItems) -> Bool {
        source.places.withLock { places in
            guard source.isValid else { return false }
            places.append(ItemPlace(self, items.mode, slot: items.add(source), items: items))
            return true
        }
    }

    /// False when it is there already, or invalid.
    func addLocked(_ source: DescriptorSource, to items: ModeItems) throws(LoopError) -> Bool {
        let isThere = source.places.withLock { $0.contains(items.mode, of: self) }
        return isThere ? false : try insertLocked(source, in: items)
    }

    /// The same for a mode that it is not in.
    func insertLocked(_ source: DescriptorSource, in items: ModeItems) throws(LoopError) -> Bool {
        let result: Result<Bool, LoopError> = source.places.withLock { places in
            guard source.isValid else { return .success(false) }
            if places.isEmpty { source.told.store(0, ordering: .relaxed) }
            do throws(LoopError) {
                let slot = try items.add(source, of: self)
                places.append(ItemPlace(self, items.mode, slot: slot, items: items))
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    // MARK: Removing

    func removeLocked(_ observer: LoopObserver, from mode: LoopMode) {
        guard mode != .common else { return removeFromCommon(observer) }
        guard let items = items(of: mode),
            let index = observer.places.firstIndex(where: { $0.mode == mode })
        else { return }
        items.removeObserver(observer.places.remove(at: index).slot)
        if observer.places.isEmpty { observer.owner.disclaim() }
    }

    /// Takes an observer out of the common items, and so out of all common modes.
    private func removeFromCommon(_ observer: LoopObserver) {
        guard observer.places.contains(where: { $0.mode == .common }) else { return }
        observer.places.removeAll { place in
            if place.mode == .common {
                commonObservers.remove(place.slot)
            } else if let items = items(of: place.mode), items.isCommon {
                items.removeObserver(place.slot)
            } else {
                return false
            }
            return true
        }
        if observer.places.isEmpty { observer.owner.disclaim() }
    }

    func removeLocked(_ timer: LoopTimer, from items: ModeItems) {
        guard let slot = timer.places.remove(items.timers) else { return }
        items.timers.pointee.remove(slot, of: timer)
        if timer.places.isEmpty && timer.commonSlot == ItemList<LoopTimer>.none {
            timer.owner.disclaim()
        }
    }

    /// Takes a timer out of the common items.
    func removeFromCommon(_ timer: LoopTimer) {
        guard timer.commonSlot != ItemList<LoopTimer>.none else { return }
        commonTimers.remove(timer.commonSlot)
        timer.commonSlot = ItemList<LoopTimer>.none
    }

    /// Takes a timer out of all modes for good; false when it belongs to another loop, or to none. The caller keeps it
    /// alive until the lock is released.
    func invalidateLocked(_ timer: LoopTimer) -> Bool {
        guard timer.owner.loopNumber == number else { return false }
        timer.places.leave(timer)
        removeFromCommon(timer)
        timer.owner.invalidateOwned()
        return true
    }

    /// Whether it was there.
    func removeLocked(_ source: LoopSource, from mode: LoopMode) -> Bool {
        guard let place = source.places.withLock({ $0.remove(mode, of: self) }) else {
            return false
        }
        place.items?._withUnsafeGuaranteedRef { $0.removeSource(place.slot) }
        return true
    }

    func removeLocked(_ source: DescriptorSource, from mode: LoopMode) {
        guard let place = source.places.withLock({ $0.remove(mode, of: self) }) else {
            return
        }
        place.items?._withUnsafeGuaranteedRef { $0.removeDescriptor(place.slot) }
    }
}

// MARK: - Invalidation

extension EventRunLoop {
    func removeFromAllModes(_ observer: LoopObserver) {
        lock.lock()
        for place in observer.places {
            if place.mode == .common {
                commonObservers.remove(place.slot)
            } else {
                items(of: place.mode)?.removeObserver(place.slot)
            }
        }
        observer.places = []
        lock.unlock()
    }

    /// Whether the source is in no other loop.
    @discardableResult
    func removeFromAllModes(_ source: LoopSource) -> Bool {
        var isNowhere = false
        lock.lock()
        let left = source.places.withLock { places in
            let left = places.removeAll(of: self)
            isNowhere = places.isEmpty
            return left
        }
        left.forEach { place in
            guard let items = place.items else { return commonSources.remove(place.slot) }
            items._withUnsafeGuaranteedRef { $0.removeSource(place.slot) }
        }
        lock.unlock()
        left.forEach { if $0.items != nil { source.wasCancelled(in: self, $0.mode) } }
        return isNowhere
    }

    func removeFromAllModes(_ source: DescriptorSource) {
        lock.lock()
        takePlaces(of: source.places).forEach { place in
            guard let items = place.items else { return commonDescriptors.remove(place.slot) }
            items._withUnsafeGuaranteedRef { $0.removeDescriptor(place.slot) }
        }
        lock.unlock()
    }

    /// Requests the events that a source waits for now from the kernel, in all its modes.
    func eventsChanged(of source: DescriptorSource) {
        lock.lock()
        defer { lock.unlock() }
        source.places.withLock { places in
            places.forEach { place in
                guard place.isIn(self) else { return }
                place.items?._withUnsafeGuaranteedRef { $0.eventsChanged(slot: place.slot) }
            }
        }
    }

    /// Takes new sets for all its modes, and with them what is the source's own.
    func watchAgain(_ source: DescriptorSource) {
        lock.lock()
        defer { lock.unlock() }
        source.places.withLock { places in
            places.forEach { place in
                guard place.isIn(self) else { return }
                place.items?._withUnsafeGuaranteedRef { $0.replacePoller(of: self) }
            }
        }
    }

    /// Takes the places in this loop out of those of an item that may be in several.
    @discardableResult
    func takePlaces(of places: borrowing Locked<ItemPlaces>) -> ItemPlaces {
        places.withLock { $0.removeAll(of: self) }
    }
}
