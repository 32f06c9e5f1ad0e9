// Calling a loop from async code: a value back, an error back, and cancellation.

extension EventRunLoop {
    /// Runs `body` on the loop's thread, in `mode`, and gives back what it returns.
    ///
    ///     let image = try await loop.run { try decoder.decode(data) }
    ///
    /// - Throws: The error of `body`; `CancellationError` when the task is cancelled before `body` begins, which then
    ///   does not run; ``LoopError/stopped`` when the loop's thread ends before it begins.
    public func run<Value>(
        inMode mode: LoopMode = .common, _ body: sending @escaping () throws -> sending Value
    ) async throws -> sending Value {
        let wait = LoopWait<Value>()
        // Run by the posted block, at most once.
        nonisolated(unsafe) let body = body
        return try await wait.value {
            // Only the block holds it: a block that is dropped ends the wait.
            let end = AtEnd { wait.end(throwing: LoopError.stopped) }
            // Swift 6.2 does not see that `body` is sent with it.
            nonisolated(unsafe) let block = { withExtendedLifetime(end) { wait.end(with: body) } }
            return post(inMode: mode, block) ? {} : nil
        }
    }
}
