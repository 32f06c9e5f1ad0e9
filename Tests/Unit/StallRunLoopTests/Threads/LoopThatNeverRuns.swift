import Foundation

@testable import StallRunLoop

/// The loop of a thread that does nothing but wait until `end` is signalled, and ends then.
///
/// Handed over behind a lock, too: ThreadSanitizer does not see that a continuation orders what the two threads do.
func loopThatNeverRuns() async -> (loop: EventRunLoop, end: DispatchSemaphore) {
    let end = DispatchSemaphore(value: 0)
    let loop = Handed()
    await withCheckedContinuation { continuation in
        Thread {
            loop.value.withLock { $0 = EventRunLoop.current }
            continuation.resume()
            end.wait()
        }.start()
    }
    return (loop.value.withLock { $0! }, end)
}

private final class Handed: Sendable { let value = Locked<EventRunLoop?>(nil) }

extension EventRunLoop {
    /// Whether a block waits that no drain has taken. Any thread.
    var hasWaitingBlock: Bool {
        lock.lock()
        defer { lock.unlock() }
        return !blocks.countByMode().isEmpty
    }
}
