// Idle work: it may wait until the loop would otherwise sleep, one unit at a time, so that events come between units.

extension EventRunLoop {
    /// Adds a unit of work for when the loop has nothing else to do in `mode`. Units run in order, one before each
    /// sleep, so timers, sources and other modes are never late by more than one unit. While the loop runs in
    /// another mode, such as tracking, they wait.
    ///
    /// - Returns: false when the loop's thread has ended; the unit is dropped. True means that it was taken: a thread that
    ///   ends later drops it.
    @discardableResult
    public func performWhenIdle(
        inMode mode: LoopMode = .default, _ unit: sending @escaping () -> Void
    ) -> Bool {
        lock.lock()
        guard !isDead else {
            lock.unlock()
            return false
        }
        idleWork[mode, default: IdleWork(mode)].append(unit)
        let observer = idleWork[mode]!.observer
        lock.unlock()
        add(observer, toMode: mode)
        wakeUp()
        return true
    }

    /// Runs one unit; asks for another pass while there are more.
    fileprivate func runIdleUnit(in mode: LoopMode) {
        lock.lock()
        let unit = idleWork[mode]?.takeFirst()
        let hasMore = idleWork[mode].map { $0.count > 0 } ?? false
        if !hasMore, let observer = idleWork[mode]?.observer { removeLocked(observer, from: mode) }
        lock.unlock()
        if hasMore { wakeUp() }
        unit?()
    }
}

/// The idle work of one mode. Guarded by the loop's lock.
struct IdleWork {
    /// Nil where a unit was taken.
    private var units: [(() -> Void)?] = []
    private var head = 0
    var count: Int { units.count - head }
    /// In the mode while there are units. The last of all observers, so that it comes after what they do.
    fileprivate let observer: LoopObserver

    fileprivate init(_ mode: LoopMode) {
        observer = LoopObserver(activities: .beforeWaiting, order: .max) { _, _ in
            EventRunLoop.current.runIdleUnit(in: mode)
        }
    }

    fileprivate mutating func append(_ unit: @escaping () -> Void) { units.append(unit) }

    /// Moves the oldest unit out: it holds what it captured for as long as it runs, and no longer.
    fileprivate mutating func takeFirst() -> (() -> Void)? {
        guard head < units.count else { return nil }
        let unit = units[head].take()
        head += 1
        if head * 2 > units.count {
            units.removeFirst(head)
            head = 0
        }
        return unit
    }
}
