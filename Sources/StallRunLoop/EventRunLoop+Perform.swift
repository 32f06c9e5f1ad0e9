// Handing work to a loop: blocks, delayed blocks, and blocks that the caller waits for.

internal import CLinux
internal import Glibc
internal import Synchronization

extension EventRunLoop {
    /// Adds a block to the end of the loop's queue; it runs once, in the next iteration of a run in `mode`.
    ///
    /// Does not wake the loop: call ``wakeUp()`` after it, or use ``post(inMode:_:)``. A block that is added by a
    /// block runs in the next drain, before which the loop may sleep.
    public func perform(inMode mode: LoopMode = .default, _ block: sending @escaping () -> Void) {
        requireLiving()
        blocks.post(Block(others: nil, body: block, mode: mode))
    }

    /// Adds a block that runs in whichever of `modes` runs first. Without a mode it is dropped.
    public func perform(inModes modes: [LoopMode], _ block: sending @escaping () -> Void) {
        guard let first = modes.first else { return }
        requireLiving()
        blocks.post(Block(others: Array(modes.dropFirst()), body: block, mode: first))
    }

    /// Adds a block and wakes the loop: how one thread gives work to another's loop.
    public func post(inMode mode: LoopMode = .default, _ block: sending @escaping () -> Void) {
        requireLiving()
        blocks.post(Block(others: nil, body: block, mode: mode))
        wake.wakeUpAfterPost()
    }

    /// Calls a block after `delay`, in `mode`. Invalidate the timer to cancel it.
    @discardableResult
    public func perform(
        after delay: Duration, inMode mode: LoopMode = .default,
        _ block: @escaping () -> Void
    ) -> LoopTimer {
        let timer = LoopTimer(after: delay) { _ in block() }
        add(timer, toMode: mode)
        return timer
    }

    /// Calls a handler every `interval`, first after one interval, in `mode`. Invalidate the timer to end it.
    @discardableResult
    public func schedule(
        every interval: Duration, tolerance: Duration = .zero, inMode mode: LoopMode = .default,
        _ handler: @escaping (LoopTimer) -> Void
    ) -> LoopTimer {
        let timer = LoopTimer(
            after: interval, every: interval, tolerance: tolerance, handler: handler)
        add(timer, toMode: mode)
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
        let completion = promise(inMode: mode, block)
        // The thread may have ended in between: either it has dropped the block, or this sees that it has ended.
        if hasEnded.load(ordering: .sequentiallyConsistent) { dropBlocks() }
        guard completion.wait() else { throw .stopped }
    }

    /// Posts a block that owns the only promise to run: when it is dropped, the completion says so.
    private func promise(inMode mode: LoopMode, _ block: sending @escaping () -> Void) -> Completion
    {
        let completion = Completion()
        let promise = Promise(completion)
        post(inMode: mode) {
            block()
            promise.fulfil()
        }
        return completion
    }

    private func requireLiving() {
        precondition(
            !hasEnded.load(ordering: .relaxed), "a run loop whose thread has ended takes no blocks")
    }
}
