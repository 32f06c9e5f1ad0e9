// Work that can be taken back before it begins.

/// Work that a loop runs once, unless it is cancelled before that.
///
///     let save = LoopWork { document.save() }
///     loop.performWhenIdle(save)
///     save.cancel()                      // what it captured is released now
///
/// Handed over several times, to one loop or to several, it still runs once. It is cancelled when the threads of all
/// loops that have it end before that.
///
/// A cancelled closure is released at once. Its entry in the loop's queue, some 150 bytes, stays until the loop runs in
/// the work's mode or its thread ends. A ``LoopTimer`` leaves nothing behind.
///
/// **Thread safety:** any thread may hand it over and cancel it; it runs on the loop's thread.
public final class LoopWork: @unchecked Sendable {
    private struct State {
        /// Nil once it has begun or was cancelled.
        var body: (() -> Void)?
        /// How many blocks of loops wait to run it.
        var entryCount = 0
    }

    private let state: Locked<State>

    /// Makes work; hand it over with ``EventRunLoop/post(inMode:_:)-(_,LoopWork)`` and the like.
    public init(_ body: sending @escaping () -> Void) { state = Locked(State(body: body)) }

    /// Whether it has neither begun nor been cancelled.
    public var isWaiting: Bool { state.withLock { $0.body != nil } }

    /// Takes it back, and releases what it captured.
    ///
    /// - Returns: false when it had begun, or was cancelled before.
    @discardableResult
    public func cancel() -> Bool { take() != nil }

    /// Runs it, if no other thread was faster.
    func run() { take()?() }

    private func take() -> (() -> Void)? { state.withLock { $0.body.take() } }

    /// The work's entry in a loop, held by the block that runs it. The app may hold the work, and the work the app's
    /// object: so the last entry that is dropped releases the captures of the work too.
    fileprivate final class Entry: Sendable {
        let work: LoopWork

        init(_ work: LoopWork) {
            self.work = work
            work.state.withLock { $0.entryCount += 1 }
        }

        deinit {
            let dropped = work.state.withLock { state in
                state.entryCount -= 1
                return state.entryCount == 0 ? state.body.take() : nil
            }
            withExtendedLifetime(dropped) {}
        }
    }

    /// A block that runs it.
    fileprivate func newBlock() -> @Sendable () -> Void {
        let entry = Entry(self)
        return { entry.work.run() }
    }
}

extension EventRunLoop {
    /// Adds work to the end of the loop's queue, as ``perform(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func perform(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, perform(inMode: mode, work.newBlock()))
    }

    /// Adds work and wakes the loop, as ``post(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func post(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, post(inMode: mode, work.newBlock()))
    }

    /// Adds work for when the loop has nothing else to do, as ``performWhenIdle(inMode:_:)-(_,()->Void)`` does.
    ///
    /// - Returns: false when the loop's thread has ended; the work is cancelled then.
    @discardableResult
    public func performWhenIdle(inMode mode: LoopMode = .default, _ work: LoopWork) -> Bool {
        cancelUnlessTaken(work, performWhenIdle(inMode: mode, work.newBlock()))
    }

    private func cancelUnlessTaken(_ work: LoopWork, _ isTaken: Bool) -> Bool {
        if !isTaken { work.cancel() }
        return isTaken
    }
}
