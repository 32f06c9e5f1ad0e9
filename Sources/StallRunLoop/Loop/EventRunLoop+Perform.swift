// Handing work to a loop: blocks, delayed blocks, and blocks that the caller waits for.

internal import CLinux
internal import Glibc
internal import Synchronization

extension EventRunLoop {
    /// Adds a block to the end of the loop's queue; it runs once, in the next iteration of a run in `mode`.
    ///
    /// Does not wake the loop: call ``wakeUp()`` after it, or use ``post(inMode:_:)``. A block that is added by a
    /// block runs in the next drain, before which the loop may sleep.
    ///
    /// - Returns: false when the loop's thread has ended; the block is dropped. True means that it was taken: a thread that
    ///   ends later drops it.
    @discardableResult
    public func perform(inMode mode: LoopMode = .default, _ block: sending @escaping () -> Void)
        -> Bool
    {
        take(Block(others: nil, body: block, mode: mode))
    }

    /// Adds a block that runs in whichever of `modes` runs first. Without a mode it is dropped.
    ///
    /// - Returns: false when it was dropped, as ``perform(inMode:_:)`` says.
    @discardableResult
    public func perform(inModes modes: [LoopMode], _ block: sending @escaping () -> Void) -> Bool {
        guard let first = modes.first else { return false }
        return take(Block(others: Array(modes.dropFirst()), body: block, mode: first))
    }

    /// Adds a block and wakes the loop: how one thread gives work to another's loop.
    ///
    /// - Returns: false when it was dropped, as ``perform(inMode:_:)`` says.
    @discardableResult
    public func post(inMode mode: LoopMode = .default, _ block: sending @escaping () -> Void)
        -> Bool
    {
        guard take(Block(others: nil, body: block, mode: mode)) else { return false }
        wake.wakeUpAfterPost()
        return true
    }

    /// False when the thread has ended. When it ends at this moment, either it drops the block or this sees that it has
    /// ended.
    @inline(__always) private func take(_ block: consuming Block) -> Bool {
        guard !hasEnded.load(ordering: .relaxed) else { return false }
        blocks.post(block)
        if hasEnded.load(ordering: .sequentiallyConsistent) { dropBlocks() }
        return true
    }

    /// Calls a block after `delay`, in `mode`. Invalidate the timer to cancel it. When the loop's thread has ended, the
    /// timer that is returned is invalid.
    @discardableResult
    public func perform(
        after delay: Duration, inMode mode: LoopMode = .default,
        _ block: sending @escaping () -> Void
    ) -> LoopTimer {
        scheduled(LoopTimer(after: delay) { _ in block() }, inMode: mode)
    }

    /// Calls a handler every `interval`, first after one interval, in `mode`. Invalidate the timer to end it. When the
    /// loop's thread has ended, the timer that is returned is invalid.
    @discardableResult
    public func schedule(
        every interval: Duration, tolerance: Duration = .zero, inMode mode: LoopMode = .default,
        _ handler: sending @escaping (LoopTimer) -> Void
    ) -> LoopTimer {
        scheduled(
            LoopTimer(after: interval, every: interval, tolerance: tolerance, handler: handler),
            inMode: mode)
    }

    private func scheduled(_ timer: LoopTimer, inMode mode: LoopMode) -> LoopTimer {
        if !add(timer, toMode: mode) { timer.invalidate() }
        return timer
    }

    /// Posts a block and waits until it has run.
    ///
    /// - Throws: ``LoopError/wouldDeadlock`` on the loop's own thread; ``LoopError/stopped`` when the loop's
    ///   thread ends before it runs the block.
    public func performAndWait(
        inMode mode: LoopMode = .common, _ block: sending @escaping () -> Void
    ) throws(LoopError) {
        guard !isCurrent else { throw .wouldDeadlock }
        guard let completion = promise(inMode: mode, block) else { throw .stopped }
        guard completion.wait() else { throw .stopped }
    }

    /// Posts a block that owns the only promise to run: when it is dropped, the completion says so. Nil when it was not
    /// taken.
    private func promise(inMode mode: LoopMode, _ block: sending @escaping () -> Void)
        -> Completion?
    {
        let completion = Completion()
        let promise = Promise(completion)
        let isTaken = post(inMode: mode) {
            block()
            promise.fulfil()
        }
        return isTaken ? completion : nil
    }
}
