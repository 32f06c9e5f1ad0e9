// Work that can be taken back before it begins.

/// Work that a loop runs once, unless it is cancelled before that.
///
///     let save = LoopWork { document.save() }
///     loop.performWhenIdle(save)
///     save.cancel()                      // what it captured is released now
///
/// Handed over several times, to one loop or to several, it still runs once.
///
/// **Thread safety:** any thread may hand it over and cancel it; it runs on the loop's thread.
public final class LoopWork: @unchecked Sendable {
    /// Nil once it has begun or was cancelled.
    private let body: Locked<(() -> Void)?>

    /// Makes work; hand it over with ``EventRunLoop/post(inMode:_:)-(_,LoopWork)`` and the like.
    public init(_ body: sending @escaping () -> Void) { self.body = Locked(body) }

    /// Whether it has neither begun nor been cancelled.
    public var isWaiting: Bool { body.withLock { $0 != nil } }

    /// Takes it back, and releases what it captured.
    ///
    /// - Returns: false when it had begun, or was cancelled before.
    @discardableResult
    public func cancel() -> Bool { take() != nil }

    /// Runs it, if no other thread was faster.
    func run() { take()?() }

    private func take() -> (() -> Void)? { body.withLock { $0.take() } }
}

extension EventRunLoop {
    /// Adds work to the end of the loop's queue, as ``perform(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func perform(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, perform(inMode: mode) { work.run() })
    }

    /// Adds work and wakes the loop, as ``post(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func post(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, post(inMode: mode) { work.run() })
    }

    /// Adds work for when the loop has nothing else to do, as ``performWhenIdle(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func performWhenIdle(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, performWhenIdle(inMode: mode) { work.run() })
    }

    private func cancelUnlessTaken(_ work: LoopWork, _ isTaken: Bool) -> Bool {
        if !isTaken { work.cancel() }
        return isTaken
    }
}
