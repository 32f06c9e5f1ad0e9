import CCaptureTesting
import Glibc
import StallCapture
import StallModel
import Synchronization
import Testing

/// Goal: a thread's stack is captured whole, whatever it does, and a blocked thread never notices.
/// Method: real threads, blocked in real system calls through functions that are never inlined; dladdr names what was
/// captured.
@Suite(.serialized) struct StackSamplerTests {
    @Test func `a sleeping thread is captured without a signal and sleeps on`() throws {
        let interrupted = Atomic<Bool>(false)
        let victim = VictimThread {
            sleepBriefly(); interrupted.store(true, ordering: .releasing)
        }
        victim.waitForState("S")
        var sampler = try StackSampler()
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(1))
        #expect(stack.method == .signalFree)
        #expect(!stack.isTruncated)
        #expect(stack.functions.contains { $0.contains("sleepBriefly") }, "\(stack.functions)")
    }
}

@inline(never) func sleepBriefly() { usleep(300_000); blackHole() }
@inline(never) func blackHole() {}

extension CapturedStack {
    /// The dynamic symbol of each frame, `?` where there is none.
    var functions: [String] {
        addresses.map { testing_symbol_name($0.lookupAddress).map { String(cString: $0) } ?? "?" }
    }
}
