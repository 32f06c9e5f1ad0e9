import Foundation
import LoopConformance
import StallRunLoop
import Synchronization
import Testing

/// Goal: a loop thread runs every task it took, in order, and is gone when `stop()` returns.
@Suite struct LoopThreadTests {
    @Test func `tasks of one thread run in order, also those that wait when it is told to stop`()
        throws
    {
        let thread = try LoopThread(name: "tasks")
        let gate = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var log: [Int] = []
        try thread.submit { gate.wait() }
        for number in 0..<1_000 { try thread.submit { log.append(number) } }
        gate.signal()
        thread.stop()
        #expect(log == Array(0..<1_000))
        #expect(throws: LoopError.stopped) { try thread.submit {} }
    }

    @Test func `what several threads submit while another one stops it is run or refused`() throws {
        for _ in 0..<20 {
            let thread = try LoopThread()
            let (taken, run) = (Counter(), Counter())
            let group = DispatchGroup()
            for _ in 0..<4 {
                group.enter()
                Thread {
                    while (try? thread.submit { run.increment() }) != nil { taken.increment() }
                    group.leave()
                }.start()
            }
            while taken.value < 100 { sched_yield() }
            thread.stop()
            group.wait()
            #expect(run.value == taken.value)
        }
    }

    @Test func `letting go of it runs the tasks, ends the thread and frees what the tasks held`()
        throws
    {
        let held = Counter()
        weak var released: Counter?
        do {
            let thread = try LoopThread()
            let counter = Counter()
            released = counter
            try thread.submit {
                counter.increment()
                held.increment()
            }
        }
        #expect(held.value == 1)
        #expect(released == nil)
    }

    @Test func `a task may stop its own thread`() throws {
        let thread = try LoopThread()
        let ran = Counter()
        try thread.submit {
            thread.stop()
            ran.increment()
        }
        thread.stop()
        #expect(ran.value == 1)
    }

    @Test func `a task that stops the loop does not end the thread`() throws {
        let thread = try LoopThread()
        let ran = Counter()
        let loop = thread.loop
        try thread.submit { loop.stop() }
        try thread.submit { ran.increment() }
        thread.stop()
        #expect(ran.value == 1)
    }

    @Test func `stopping ends runs that are nested in a task`() throws {
        let thread = try LoopThread()
        let nested = DispatchSemaphore(value: 0)
        let ran = Counter()
        let loop = thread.loop
        try thread.submit {
            loop.perform { nested.signal() }
            loop.run(mode: .default)
            ran.increment()
        }
        nested.wait()
        thread.stop()
        #expect(ran.value == 1)
    }

    @Test func `an actor runs on its loop's thread`() async throws {
        actor Worker {
            let thread: LoopThread
            var count = 0
            init(_ thread: LoopThread) { self.thread = thread }
            nonisolated var unownedExecutor: UnownedSerialExecutor {
                thread.loop.asUnownedSerialExecutor()
            }
            func work() -> Bool {
                count += 1
                return thread.loop.isCurrent
            }
        }
        let worker = Worker(try LoopThread(name: "actor"))
        for _ in 0..<100 { #expect(await worker.work()) }
        #expect(await worker.count == 100)
    }

    final class Counter: Sendable {
        private let count = Atomic<Int>(0)
        var value: Int { count.load(ordering: .acquiring) }
        func increment() { count.add(1, ordering: .releasing) }
    }
}
