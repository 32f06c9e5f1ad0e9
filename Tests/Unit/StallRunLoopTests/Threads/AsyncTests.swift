import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: async code can call a loop, wait for its timers and descriptors, and run on its thread; whatever ends, no task
/// waits for ever.
@Suite struct AsyncTests {
    struct Failure: Error {}

    @Test func `a call gives back the value or the error of its body, from the loop's thread`()
        async throws
    {
        let thread = try LoopThread(name: "calls")
        let loop = thread.loop
        #expect(try await loop.run { loop.isCurrent })
        await #expect(throws: Failure.self) { try await loop.run { throw Failure() } }
        thread.stop()
        await #expect(throws: LoopError.stopped) { try await loop.run {} }
    }

    @Test func `a call that is cancelled before its turn does not run`() async throws {
        let thread = try LoopThread()
        let loop = thread.loop
        let gate = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var hasRun = false
        try thread.submit { gate.wait() }
        await withTaskGroup { group in
            group.addTask {
                await #expect(throws: CancellationError.self) {
                    try await loop.run { hasRun = true }
                }
            }
            group.cancelAll()
        }
        gate.signal()
        thread.stop()
        #expect(!hasRun)
    }

    @Test func `a call ends when the thread of its loop ends first`() async {
        let (loop, end) = await loopThatNeverRuns()
        let call = Task { try await loop.run {} }
        while !loop.hasWaitingBlock { await Task.yield() }
        end.signal()
        await #expect(throws: LoopError.stopped) { try await call.value }
    }

    @Test func `a task prefers the loop's thread, with what it calls`() async throws {
        let thread = try LoopThread(name: "tasks")
        let loop = thread.loop
        @concurrent nonisolated func isOnLoop() async -> Bool { loop.isCurrent }
        let isThere = await withTaskExecutorPreference(loop.taskExecutor) {
            await withTaskGroup { group in
                for _ in 0..<20 { group.addTask { await isOnLoop() } }
                return await group.reduce(true) { $0 && $1 }
            }
        }
        #expect(isThere)
        thread.stop()
        let value = await Task(executorPreference: loop.taskExecutor) { await isOnLoop() }.value
        #expect(!value)
    }

    @Test func `ticks come at their phase until the iteration ends`() async throws {
        let thread = try LoopThread()
        let loop = thread.loop
        var last: MonotonicInstant?
        var count = 0
        for await instant in loop.ticks(every: .milliseconds(2)) {
            if let last { #expect(instant > last) }
            last = instant
            count += 1
            if count == 5 { break }
        }
        #expect(count == 5)
        while try await loop.run({ loop.nextTimerFire() }) != nil { await Task.yield() }
        thread.stop()
        for await _ in loop.ticks(every: .milliseconds(1)) {
            Issue.record("a tick of an ended loop")
        }
    }

    @Test func `ticks end with the loop's thread`() async throws {
        let thread = try LoopThread()
        var ticks = thread.loop.ticks(every: .milliseconds(1)).makeAsyncIterator()
        #expect(await ticks.next() != nil)
        thread.stop()
        while await ticks.next() != nil {}
    }

    @Test func `a clock sleeps by the loop's timers, and ends early when cancelled or stopped`()
        async throws
    {
        let thread = try LoopThread()
        let loop = thread.loop
        let clock = LoopClock(loop: loop)
        let begin = clock.now
        try await clock.sleep(for: .milliseconds(5))
        #expect(clock.now - begin >= .milliseconds(5))
        let sleeper = Task { try await clock.sleep(for: .seconds(3600)) }
        while try await loop.run({ loop.nextTimerFire() }) == nil { await Task.yield() }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        let other = Task { try await clock.sleep(for: .seconds(3600)) }
        while try await loop.run({ loop.nextTimerFire() }) == nil { await Task.yield() }
        thread.stop()
        await #expect(throws: LoopError.stopped) { try await other.value }
        await #expect(throws: LoopError.stopped) { try await clock.sleep(for: .seconds(3600)) }
        try await LoopClock().sleep(for: .milliseconds(1))
    }

    @Test
    func `readiness comes when there is something to read, and is watched only while awaited`()
        async throws
    {
        let thread = try LoopThread()
        let loop = thread.loop
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        defer { ends.forEach { close($0) } }
        let (input, output) = (ends[0], ends[1])
        var received = ""
        write(output, "hello", 5)
        for try await events in loop.readiness(of: input) {
            #expect(events.contains(.readable))
            var byte: UInt8 = 0
            Glibc.read(input, &byte, 1)
            received.append(Character(UnicodeScalar(byte)))
            if received.count == 5 { break }
        }
        #expect(received == "hello")
        write(output, "x", 1)
        // Without a waiting task the loop serves nothing, and sleeps.
        while !loop.isWaiting { await Task.yield() }
        await #expect(throws: LoopError.system(call: "epoll_ctl", errno: EBADF)) {
            var none = loop.readiness(of: 9_999).makeAsyncIterator()
            _ = try await none.next()
        }
        thread.stop()
        await #expect(throws: LoopError.stopped) {
            var none = loop.readiness(of: input).makeAsyncIterator()
            _ = try await none.next()
        }
    }

    @Test func `a registration that is let go of takes its item out of the loop`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let source = LoopSource { _ in }
            var registration: LoopRegistration? = LoopRegistration(source)
            loop.add(source, toMode: .default)
            #expect(registration != nil && source.isValid)
            registration = nil
            #expect(!source.isValid)
            #expect(loop.run(mode: .default) == .finished)
        }
    }
}
