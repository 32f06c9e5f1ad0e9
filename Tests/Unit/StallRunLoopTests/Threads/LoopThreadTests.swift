import CLinux
import CoreFoundation  // has pthread_attr_t, depending on which module is loaded first
import Foundation
import LoopConformance
@testable import StallRunLoop
import Synchronization
import Testing

/// Goal: a loop thread runs every task it took, in order, and is gone when `stop()` returns.
@Suite struct LoopThreadTests {
    @Test func `it has the stack and the nice value that were asked for`() throws {
        nonisolated(unsafe) var found: (stack: Int, nice: CInt) = (0, -1)
        let wanted = 1_024 * 1_024 - 5
        let thread = try LoopThread(name: "small", stackSize: wanted, nice: 7)
        try thread.submit {
            let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
            defer { attributes.deallocate() }
            // Swift's Glibc hides it.
            typealias Attributes =
                @convention(c) (pthread_t, UnsafeMutablePointer<pthread_attr_t>) -> CInt
            let address = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "pthread_getattr_np")
            _ = unsafeBitCast(address, to: Attributes.self)(pthread_self(), attributes)
            pthread_attr_getstacksize(attributes, &found.stack)
            pthread_attr_destroy(attributes)
            found.nice = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        }
        thread.stop()
        // glibc may take a stack that an earlier thread left, of up to four times the size; the default is 8 MB.
        #expect((wanted..<5 * wanted).contains(found.stack))
        #expect(found.nice == max(7, found.nice))
        for size in [0, -1, 16_384, 131_072, Int.max] {
            #expect(throws: LoopError.system(call: "pthread_attr_setstacksize", errno: EINVAL)) {
                _ = try LoopThread(stackSize: size)
            }
        }
    }

    /// Nothing of the library needs more than the smallest stack that is accepted: a dump with names of handlers needs
    /// most.
    @Test func `the smallest stack is enough for all that a loop does`() throws {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        let smallest = LoopThread.smallestStack(&attributes)
        let thread = try LoopThread(name: "smallest", stackSize: smallest)
        nonisolated(unsafe) var dump = ""
        try thread.submit {
            let loop = EventRunLoop.current
            let timer = loop.schedule(every: .seconds(3)) { _ in }
            _ = try? loop.fileDescriptor()
            dump = loop.debugDescription
            timer.invalidate()
        }
        let sockets = try MessageSockets()
        let done = DispatchSemaphore(value: 0)
        let port = try LoopMessagePort(
            descriptor: sockets.own, on: thread.loop, coding: .text
        ) { _, _ in done.signal() }
        #expect(write(sockets.peer, [0, 0, 0, 1, 65] as [UInt8], 5) == 5)
        done.wait()
        port.close()
        thread.stop()
        close(sockets.peer)
        #expect(dump.contains("timer (closure #1 in closure #1 in LoopThreadTests."), "\(dump)")
    }

    /// Each thread holds the last reference to the next one, and lets go of it at the same time: a wait of each for the next
    /// would never end.
    @Test(arguments: [2, 3])
    func `threads that let go of each other all end`(count: Int) throws {
        final class Holder: @unchecked Sendable { var thread: LoopThread? }
        var threads = try (0..<count).map { _ in try LoopThread() }
        let ends = threads.map { _ in DispatchSemaphore(value: 0) }
        let everyone = DispatchSemaphore(value: 0)
        let start = DispatchSemaphore(value: 0)
        for index in threads.indices {
            let holder = Holder()
            holder.thread = threads[(index + 1) % count]
            let end = ends[index]
            threads[index].loop.add(
                LoopSource(onCancel: { _, _ in end.signal() }) { _ in }, toMode: .default)
            threads[index].loop.post {
                everyone.signal()
                start.wait()
                holder.thread = nil
            }
        }
        threads = []
        for _ in ends { everyone.wait() }
        for _ in ends { start.signal() }
        for end in ends { #expect(end.wait(timeout: .now() + 20) == .success) }
    }

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
        let (ended, ran) = (DispatchSemaphore(value: 0), Counter())
        let loop = thread.loop
        // Only what is submitted after the end of the run shows whether the thread begins another one.
        loop.add(
            LoopObserver(activities: .exit, repeats: false) { _, _ in ended.signal() },
            toMode: .default)
        try thread.submit { loop.stop() }
        ended.wait()
        try thread.submit { ran.increment() }
        thread.stop()
        #expect(ran.value == 1)
    }

    @Test func `every stop returns after the last task`() throws {
        let thread = try LoopThread()
        let (gate, ran) = (DispatchSemaphore(value: 0), Counter())
        try thread.submit {
            gate.wait()
            ran.increment()
        }
        let first = Thread { thread.stop() }
        first.start()
        // Once a task is refused the first stop has begun.
        while (try? thread.submit {}) != nil { sched_yield() }
        Thread { gate.signal() }.start()
        thread.stop()
        #expect(ran.value == 1)
    }

    /// Method: a destructor of thread-specific data, which the end of a thread runs, is slower than a stop that does not wait.
    @Test func `stop returns after the thread's own end`() throws {
        let thread = try LoopThread()
        let hasEnded = Counter()
        var key = pthread_key_t()
        pthread_key_create(&key) { value in
            poll(nil, 0, 50)
            Unmanaged<Counter>.fromOpaque(value!).takeRetainedValue().increment()
        }
        try thread.submit { [key] in
            pthread_setspecific(key, Unmanaged.passRetained(hasEnded).toOpaque())
        }
        thread.stop()
        #expect(hasEnded.value == 1)
        pthread_key_delete(key)
    }

    /// Method: a submission is begun by hand, so that no race has to be met.
    @Test func `the end is posted behind a task that is being handed over`() throws {
        let thread = try LoopThread()
        let (stopped, ran) = (DispatchSemaphore(value: 0), Counter())
        nonisolated(unsafe) var isEndPosted = false
        #expect(thread.beginSubmission())
        try thread.submit {
            thread.stop()
            isEndPosted = thread.loop.hasWaitingBlock
            stopped.signal()
        }
        stopped.wait()
        #expect(!isEndPosted)
        // One that comes too late neither counts nor posts the end.
        #expect(throws: LoopError.stopped) { try thread.submit {} }
        #expect(thread.loop.post(inMode: .common) { ran.increment() })
        thread.endSubmission()
        thread.stop()
        #expect(ran.value == 1)
    }

    @Test func `it bears its name`() throws {
        let thread = try LoopThread(name: "a name that is too long")
        nonisolated(unsafe) var name = ""
        try thread.submit {
            name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
        }
        thread.stop()
        #expect(name == "a name that is \n")
    }

    @Test func `tasks run in every common mode, and so does the end`() throws {
        let thread = try LoopThread()
        let (nested, ran) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let loop = thread.loop
        try thread.submit {
            loop.add(LoopSource { _ in }, toMode: .tracking)
            loop.perform(inMode: .tracking) { nested.signal() }
            loop.run(mode: .tracking)
        }
        nested.wait()
        try thread.submit { ran.signal() }
        #expect(ran.wait(timeout: .now() + 60) == .success)
        thread.stop()
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

    /// A task that awaits such a job would wait for ever otherwise.
    @Test func `an actor's jobs run in turn after its loop's thread has ended`() async throws {
        actor Worker {
            let loop: EventRunLoop
            var count = 0
            init(_ loop: EventRunLoop) { self.loop = loop }
            nonisolated var unownedExecutor: UnownedSerialExecutor {
                loop.asUnownedSerialExecutor()
            }
            func work() -> Int {
                assumeIsolated { _ in }
                count += 1
                return count
            }
        }
        let thread = try LoopThread(name: "ended")
        let worker = Worker(thread.loop)
        #expect(await worker.work() == 1)
        thread.stop()
        await withTaskGroup { group in
            for _ in 0..<100 { group.addTask { _ = await worker.work() } }
        }
        #expect(await worker.work() == 102)
    }

    /// What waits in the loop when its thread ends is not dropped either.
    @Test func `an actor's jobs that its loop never ran run after the thread's end`() async {
        actor Worker {
            let loop: EventRunLoop
            init(_ loop: EventRunLoop) { self.loop = loop }
            nonisolated var unownedExecutor: UnownedSerialExecutor {
                loop.asUnownedSerialExecutor()
            }
            func work() -> Bool { loop.isCurrent }
        }
        let (loop, end) = await loopThatNeverRuns()
        let worker = Worker(loop)
        async let isOnLoop = worker.work()
        while !loop.hasWaitingBlock { await Task.yield() }
        end.signal()
        #expect(await isOnLoop == false)
    }

    @Test func `a thread whose loop gets no descriptors is refused with the reason`() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 3, rlim_max: 3)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let expected = LoopError.system(call: "eventfd", errno: EMFILE)
            do throws(LoopError) {
                _ = try LoopThread()
                exit(1)
            } catch {
                exit(error == expected ? 0 : 2)
            }
        }
    }

    final class Counter: Sendable {
        private let count = Atomic<Int>(0)
        var value: Int { count.load(ordering: .acquiring) }
        func increment() { count.add(1, ordering: .releasing) }
    }
}
