import Foundation
import StallRunLoop

/// To hand a block to a sleeping loop is not to wake it: the block waits until something else does.
func tourOfWakingUp() throws {
    let thread = try LoopThread(name: "sleeper")
    let loop = thread.loop
    let ran = DispatchSemaphore(value: 0)
    while !loop.isWaiting { usleep(1_000) }

    loop.perform { ran.signal() }
    let slept = ran.wait(timeout: .now() + .milliseconds(100)) == .timedOut
    print("  perform without wakeUp: the block \(slept ? "has not run after 100 ms" : "ran")")

    loop.wakeUp()
    let woke = ran.wait(timeout: .now() + .seconds(10)) == .success
    print("  after wakeUp: the block \(woke ? "ran" : "has not run")")

    loop.post { ran.signal() }
    let posted = ran.wait(timeout: .now() + .seconds(10)) == .success
    print("  post, which is both: the block \(posted ? "ran" : "has not run")")
    thread.stop()
}
