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
        func findThread() -> RegisteredThread? { thread }
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
        self.nanoseconds = nanoseconds
        asked.signal()
        done.wait()
    }

    func end() {
        isOver = true
        asked.signal()
    }
}
