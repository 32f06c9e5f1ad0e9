// Calling a loop from async code: a value back, an error back, and cancellation.

internal import Synchronization

extension EventRunLoop {
    /// Runs `body` on the loop's thread, in `mode`, and gives back what it returns.
    ///
    ///     let image = try await loop.run { try decoder.decode(data) }
    ///
    /// - Throws: What `body` throws; `CancellationError` when the task is cancelled before `body` begins, which then does not
    ///   run; ``LoopError/stopped`` when the loop's thread ends before it begins.
    public func run<Value>(
        inMode mode: LoopMode = .common, _ body: sending @escaping () throws -> sending Value
    ) async throws -> sending Value {
        let call = LoopCall(body)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard call.begin(continuation) else { return }
                // When the block is dropped, the call is: its end is that of the last reference.
                let block = LoopCallBlock(call)
                post(inMode: mode) { block.run() }
            }
        } onCancel: {
            call.cancel()
        }
    }
}

/// A body that is run once or never, and the task that waits for it.
private final class LoopCall<Value>: @unchecked Sendable {
    private enum State {
        case waitingForTask
        case waitingForLoop(CheckedContinuation<Value, any Error>)
        case over
    }

    private let state = Locked(State.waitingForTask)
    private let body: () throws -> sending Value

    init(_ body: sending @escaping () throws -> sending Value) { self.body = body }

    /// False when it was cancelled before; then the continuation has been resumed.
    func begin(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        let isCancelled = state.withLock { state in
            if case .over = state { return true }
            state = .waitingForLoop(continuation)
            return false
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) }
        return !isCancelled
    }

    func cancel() { end()?.resume(throwing: CancellationError()) }

    func drop() { end()?.resume(throwing: LoopError.stopped) }

    func run() {
        guard let continuation = end() else { return }
        do { continuation.resume(returning: try body()) } catch {
            continuation.resume(throwing: error)
        }
    }

    /// The continuation of the first that ends the call.
    private func end() -> CheckedContinuation<Value, any Error>? {
        state.withLock { state in
            defer { state = .over }
            if case .waitingForLoop(let continuation) = state { return continuation }
            return nil
        }
    }
}

/// What the posted block holds.
private final class LoopCallBlock<Value>: @unchecked Sendable {
    private let call: LoopCall<Value>

    init(_ call: LoopCall<Value>) { self.call = call }

    deinit { call.drop() }

    func run() { call.run() }
}
