import CLinux
import Foundation
import LoopConformance
import StallModel
import Synchronization
import Testing

@testable import StallRunLoop

/// Goal: what waits for a loop, a task or a thread, keeps the promise of HandoverTests: it is done once on the loop's thread, told
/// that the loop is dead, cancelled before it begins, and let go of, never under the loop's lock.
@Suite struct AsyncHandoverTests {
    typealias Body = @Sendable () -> Void

    struct Way: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// Whether a job runs elsewhere when the loop is dead: a task must never be left waiting.
        var runsElsewhere = false
        /// Waits for the loop, then does the body, if the loop is alive.
        let wait: @Sendable (EventRunLoop, @escaping Body) async throws -> Void
    }

    /// An actor on a loop's thread.
    actor Guest {
        let loop: EventRunLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        init(_ loop: EventRunLoop) { self.loop = loop }
        func call(_ body: Body) { body() }
    }

    static let ways = [
        Way(testDescription: "run") { loop, body in try await loop.run { body() } },
        Way(testDescription: "sleep") { loop, body in
            try await LoopClock(loop: loop).sleep(for: .nanoseconds(1))
            body()
        },
        Way(testDescription: "ticks") { loop, body in
            // A loop that ticks without a pause takes a CPU until the task gets a thread, which may be minutes.
            for await _ in loop.ticks(every: .milliseconds(1)) { return body() }
            try Task.checkCancellation()
            throw LoopError.stopped
        },
        Way(testDescription: "readiness") { loop, body in
            let number = stall_eventfd_create()
            stall_eventfd_write(number)
            defer { stall_descriptor_close(number) }
            for try await _ in loop.readiness(of: number) { return body() }
        },
        Way(testDescription: "task on the loop", runsElsewhere: true) { loop, body in
            await withTaskExecutorPreference(loop.taskExecutor) { body() }
        },
        Way(testDescription: "actor on the loop", runsElsewhere: true) { loop, body in
            await Guest(loop).call(body)
        },
    ]

    private final class Calls: Sendable {
        private let number = Atomic<Int>(0)
        func add() { number.add(1, ordering: .sequentiallyConsistent) }
        var count: Int { number.load(ordering: .sequentiallyConsistent) }
    }

    /// Plays a way whose work holds a probe, which is gone when this returns.
    private static func play(
        _ way: Way, _ loop: EventRunLoop, _ census: Probe.Census, _ calls: Calls
    ) async throws {
        let probe = Probe(loop, census)
        try await way.wait(loop) { withExtendedLifetime(probe) { calls.add() } }
    }

    @Test(arguments: ways)
    func `it is done once by a living loop, and let go of`(way: Way) async throws {
        let (thread, census, calls) = (try LoopThread(), Probe.Census(), Calls())
        try await Self.play(way, thread.loop, census, calls)
        thread.stop()
        #expect(calls.count == 1)
        #expect(census.alive == 0 && census.underLock == 0)
    }

    @Test(arguments: ways)
    func `a loop whose thread has ended says so, or the job runs elsewhere`(way: Way) async throws {
        let (thread, census, calls) = (try LoopThread(), Probe.Census(), Calls())
        thread.stop()
        do {
            try await Self.play(way, thread.loop, census, calls)
            #expect(way.runsElsewhere)
        } catch {
            #expect(!way.runsElsewhere && error as? LoopError == .stopped)
        }
        #expect(calls.count == (way.runsElsewhere ? 1 : 0))
        #expect(census.alive == 0 && census.underLock == 0)
    }

    /// The loop is held up until the task has ended, so only the cancellation can have ended it.
    @Test(arguments: ways.filter { !$0.runsElsewhere })
    func `it is cancelled before it begins, and let go of`(way: Way) async throws {
        let (thread, census, calls) = (try LoopThread(), Probe.Census(), Calls())
        let gate = DispatchSemaphore(value: 0)
        try thread.submit { gate.wait() }
        let loop = thread.loop
        let task = Task { try await Self.play(way, loop, census, calls) }
        task.cancel()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(calls.count == 0)
        gate.signal()
        thread.stop()
        #expect(census.alive == 0 && census.underLock == 0)
    }

    @Test func `a thread that waits for a block is told when the loop's thread ends`() throws {
        let (thread, census, calls) = (try LoopThread(), Probe.Census(), Calls())
        let loop = thread.loop
        do {
            let probe = Probe(loop, census)
            try loop.performAndWait { withExtendedLifetime(probe) { calls.add() } }
        }
        #expect(calls.count == 1)
        thread.stop()
        do {
            let probe = Probe(loop, census)
            #expect(throws: LoopError.stopped) {
                try loop.performAndWait { withExtendedLifetime(probe) { calls.add() } }
            }
            #expect(throws: LoopError.stopped) {
                try thread.submit { withExtendedLifetime(probe) { calls.add() } }
            }
        }
        #expect(calls.count == 1)
        #expect(census.alive == 0 && census.underLock == 0)
    }
}
