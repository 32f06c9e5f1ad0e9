// A task that waits for one event of a loop, or for its cancellation.

/// Ends once: by the event, by an error, or by the cancellation of the task. Later ends count for nothing.
final class LoopWait<Value>: @unchecked Sendable {
    private enum State {
        case begun
        case waiting(CheckedContinuation<Value, any Error>)
        case over
    }

    private let state = Locked(State.begun)

    /// Waits for the end.
    ///
    /// - Parameter start: Adds what brings the event to the loop, and returns what takes it out again; nil when the loop's
    ///   thread has ended. Not called when the task is cancelled already.
    func value(after start: () -> (() -> Void)?) async throws -> sending Value {
        var cancel: (() -> Void)?
        defer { cancel?() }
        // Sent by the end, and by nothing else: `start` is not where it comes from.
        nonisolated(unsafe) let value = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard begin(continuation) else {
                    return continuation.resume(throwing: CancellationError())
                }
                cancel = start()
                if cancel == nil { end(throwing: LoopError.stopped) }
            }
        } onCancel: {
            end(throwing: CancellationError())
        }
        return value
    }

    /// Ends it with what `body` returns or throws. After another end `body` does not run.
    func end(with body: () throws -> sending Value) {
        guard let continuation = take() else { return }
        do { continuation.resume(returning: try body()) } catch {
            continuation.resume(throwing: error)
        }
    }

    func end(throwing error: any Error) { take()?.resume(throwing: error) }

    /// False when it was cancelled before.
    private func begin(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        state.withLock { state in
            if case .over = state { return false }
            state = .waiting(continuation)
            return true
        }
    }

    /// The continuation, for the first end.
    private func take() -> CheckedContinuation<Value, any Error>? {
        state.withLock { state in
            defer { state = .over }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
    }
}

/// Calls a closure when it is released.
final class AtEnd: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}
