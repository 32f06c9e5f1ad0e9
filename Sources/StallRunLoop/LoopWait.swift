// A task that waits for one event of a loop, or for its cancellation.

/// Ends once: by the event, by an error, or by the cancellation of the task. Later ends count for nothing.
final class LoopWait: @unchecked Sendable {
    private enum State {
        case begun
        case waiting(CheckedContinuation<Void, any Error>)
        case over((any Error)?)
    }

    private let state = Locked(State.begun)

    /// Waits for the end.
    ///
    /// - Parameter start: Adds what brings the event to the loop, and returns what takes it out again; nil when the loop's
    ///   thread has ended.
    func value(after start: () -> (() -> Void)?) async throws {
        let cancel = start()
        if cancel == nil { end(throwing: LoopError.stopped) }
        defer { cancel?() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if case .over(let error) = state {
                        return error.map { .failure($0) } ?? .success(())
                    }
                    state = .waiting(continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            end(throwing: CancellationError())
        }
    }

    func end(throwing error: (any Error)? = nil) {
        let continuation: CheckedContinuation<Void, any Error>? = state.withLock { state in
            switch state {
            case .begun:
                state = .over(error)
                return nil
            case .waiting(let continuation):
                state = .over(error)
                return continuation
            case .over: return nil
            }
        }
        guard let continuation else { return }
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    }
}
