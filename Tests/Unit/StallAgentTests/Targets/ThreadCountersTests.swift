import CLinux
import Foundation
import StallCapture
import StallCause
import StallDetection
import StallModel
import Testing

@testable import StallAgent

/// Goal: the counters of a target's threads are one sum, of which nothing is lost when the work leaves a thread.
/// Method: a thread of the test's own computes when told to; the target names it, or none.
@Suite struct ThreadCountersTests {
    final class Target: MonitoredTarget, @unchecked Sendable {
        // Unchecked because one test uses it on one thread.
        var thread: RegisteredThread?
        var lacksCPU = false
        func findThread() -> RegisteredThread? { thread }
        func isStarved() -> Bool { lacksCPU }
    }

    @Test
    func `what a thread used up to the end of its work counts, though nobody looked at it then`()
        throws
    {
        let (target, worker) = (Target(), Worker())
        target.thread = try RegisteredThread.found(worker.id)
        var counters = ThreadCounters(target, ControlGroup())
        let before = try #require(counters.evidence(isSuspect: true, isAsked: true).cpuTime)
        worker.compute(nanoseconds: 20_000_000)
        // The item is done, and the queue has no thread by now.
        target.thread = nil
        let after = try #require(counters.evidence(isSuspect: true, isAsked: false).cpuTime)
        #expect(after - before >= .milliseconds(20))
        worker.end()
    }

    /// A worker that was woken for an item and got no CPU takes the item only then: the queue has no thread before.
    @Test(arguments: [true, false])
    func `what a thread waited for a CPU before it took the work is the work's, if that lacked one`(
        lacksCPU: Bool
    ) throws {
        let (target, worker) = (Target(), Worker())
        // One more than there are CPUs, beside the worker: some wait, and in so long a time each does.
        let others = (0...ProcessInfo.processInfo.activeProcessorCount).map { _ in Worker() }
        // Older than the clock tick that a thread's age is known to.
        worker.compute(nanoseconds: 30_000_000)
        target.thread = try RegisteredThread.found(ThreadID(rawValue: stall_gettid()))
        var counters = ThreadCounters(target, ControlGroup())
        _ = counters.evidence(isSuspect: true, isAsked: true)
        (target.thread, target.lacksCPU) = (nil, lacksCPU)
        var reader = ThreadStatReader(worker.id)
        // On a busy machine it has waited before as well.
        let firstDelay = reader.runDelay()
        let delayBefore = try #require(firstDelay)
        let before = counters.evidence(isSuspect: true, isAsked: true)
        #expect(before.waitsForCPU == lacksCPU)
        for other in others { other.begin(nanoseconds: 40_000_000) }
        worker.compute(nanoseconds: 40_000_000)
        for other in others { other.wait() }
        let delay = reader.runDelay()
        let waited = try #require(delay) - delayBefore
        #expect(waited > .zero)
        target.thread = try RegisteredThread.found(worker.id)
        let after = counters.evidence(isSuspect: true, isAsked: true)
        let counted = try #require(after.runDelay) - #require(before.runDelay)
        #expect(lacksCPU ? counted >= waited : counted < waited)
        worker.end()
        for other in others { other.end() }
    }
}

private final class Worker: @unchecked Sendable {
    // Unchecked because semaphores order all uses.
    private let (asked, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    private var nanoseconds: UInt64 = 0
    private var isOver = false
    private(set) var id = ThreadID(rawValue: 0)

    init() {
        Thread { [self] in run() }.start()
        done.wait()
    }

    private func run() {
        id = ThreadID(rawValue: stall_gettid())
        done.signal()
        while true {
            asked.wait()
            if isOver { return }
            var (began, used): (UInt64, UInt64) = (0, 0)
            stall_thread_cpu_ns(stall_gettid(), &began)
            repeat { stall_thread_cpu_ns(stall_gettid(), &used) } while used < began + nanoseconds
            done.signal()
        }
    }

    func compute(nanoseconds: UInt64) {
        begin(nanoseconds: nanoseconds)
        wait()
    }

    func begin(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
        asked.signal()
    }

    func wait() { done.wait() }

    func end() {
        isOver = true
        asked.signal()
    }
}
