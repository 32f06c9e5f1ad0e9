// Idle work: what may wait until the loop would otherwise sleep, one unit at a time, so that events come between units.

extension EventRunLoop {
    /// Adds a unit of work for when the loop has nothing else to do in `mode`. Units run in order, one before each
    /// sleep, so timers, sources and other modes are never late by more than one unit. While the loop runs in
    /// another mode, such as tracking, they wait.
    public func performWhenIdle(
        inMode mode: LoopMode = .default, _ unit: sending @escaping () -> Void
    ) {
        lock.lock()
        idleWork[mode, default: IdleWork(mode)].units.append(unit)
        let observer = idleWork[mode]!.observer
        lock.unlock()
        add(observer, toMode: mode)
        wakeUp()
    }

    /// Runs one unit; asks for another pass while there are more.
    fileprivate func runIdleUnit(in mode: LoopMode) {
        lock.lock()
        let unit = idleWork[mode]?.units.popFirst()
        let hasMore = idleWork[mode]?.units.isEmpty == false
        if !hasMore, let observer = idleWork[mode]?.observer { removeLocked(observer, from: mode) }
        lock.unlock()
        if hasMore { wakeUp() }
        unit?()
    }
}

/// The idle work of one mode. Guarded by the loop's lock.
struct IdleWork {
    fileprivate var units: ArraySlice<() -> Void> = []
    var count: Int { units.count }
    /// In the mode while there are units. The last of all observers, so that it comes after what they do.
    fileprivate let observer: LoopObserver

    fileprivate init(_ mode: LoopMode) {
        observer = LoopObserver(activities: .beforeWaiting, order: .max) { _, _ in
            EventRunLoop.current.runIdleUnit(in: mode)
        }
    }
}
