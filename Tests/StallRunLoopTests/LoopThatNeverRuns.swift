import Foundation
import StallRunLoop

/// The loop of a thread that does nothing but wait until `end` is signalled, and ends then.
func loopThatNeverRuns() async -> (loop: EventRunLoop, end: DispatchSemaphore) {
    let end = DispatchSemaphore(value: 0)
    let loop = await withCheckedContinuation { continuation in
        Thread {
            continuation.resume(returning: EventRunLoop.current)
            end.wait()
        }.start()
    }
    return (loop, end)
}
