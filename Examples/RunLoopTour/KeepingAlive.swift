import Foundation
import StallRunLoop

/// A loop with nothing in its mode has nothing to wait for: its run ends at once, and with it the thread. One source, even
/// one that is never signalled, keeps it alive. `LoopThread` is that recipe, with a way to stop.
func tourOfKeepingAlive() throws {
    let done = DispatchSemaphore(value: 0)
    Thread {
        print(
            "  a thread without a source: its run has \(EventRunLoop.current.run(mode: .default))")
        let loop = EventRunLoop.current
        loop.add(LoopSource { _ in }, toMode: .default)
        loop.perform(after: .milliseconds(20)) { loop.stop() }
        print("  a thread with a source: it slept until it was \(loop.run(mode: .default))")
        done.signal()
    }.start()
    done.wait()

    let thread = try LoopThread(name: "worker")
    for job in 1...3 { try thread.submit { print("  LoopThread: job \(job)") } }
    thread.stop()
    do {
        try thread.submit {}
    } catch {
        print("  after stop(): \(error)")
    }
}
