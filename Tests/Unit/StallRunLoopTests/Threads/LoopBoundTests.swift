import CLinux
import Foundation
import LoopConformance
import StallModel
import Synchronization
import Testing

@testable import StallRunLoop

/// Goal: a value in a box of a loop is used on the loop's thread, freed there, and never under the loop's lock; a handler on the
/// main actor is called by the main loop only.
@Suite struct LoopBoundTests {
    /// Tells on which thread it was freed.
    private final class Resident {
        let freedOn: FreeingThread
        var count = 0
        init(_ freedOn: FreeingThread) { self.freedOn = freedOn }
        deinit { freedOn.number = stall_gettid() }
    }

    @Test func `handlers share a value that is not sendable`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let freed = FreeingThread()
            let box = LoopBound(Resident(freed), to: loop)
            loop.schedule(every: .milliseconds(1)) { timer in
                let count = box.withValue { resident in
                    resident.count += 1
                    return resident.count
                }
                if count >= 12 { timer.invalidate() }
            }
            loop.post { box.withValue { $0.count += 10 } }
            loop.run(mode: .default, for: .seconds(60))
            #expect(box.withValue { $0.count } == 12)
            let number = LoopBound(1, to: loop)
            number.value += 1
            #expect(number.value == 2)
        }
    }

    /// Returned as it is, `{ $0 }`, it would not compile.
    @Test func `a value is moved out by one that takes its place, and a new one may be returned`() {
        onFreshThread {
            let (first, second) = (FreeingThread(), FreeingThread())
            let box = LoopBound(Resident(first))
            let moved = box.withValue { value in
                let old = value
                value = Resident(second)
                return old
            }
            moved.count = 7
            let new = box.withValue { value in
                let new = Resident(FreeingThread())
                new.count = value.count + 1
                return new
            }
            #expect(moved.count == 7 && new.count == 1 && box.withValue { $0.count } == 0)
            #expect(first.number == 0)
            // Both could go to another thread.
            func give(_ value: sending Resident) {}
            give(moved)
            give(new)
        }
    }

    @Test func `it is freed on the loop's thread when another one lets go of the box`() throws {
        let thread = try LoopThread()
        let owner = thread.loop.thread.rawValue
        for _ in 0..<200 {
            let freed = FreeingThread()
            var box: LoopBound<Resident>? = LoopBound(Resident(freed), to: thread.loop)
            #expect(box?.isAccessible == false)
            box = nil
            try thread.loop.performAndWait {}
            #expect(freed.number == owner)
        }
        thread.stop()
    }

    @Test func `it is freed when the thread ends, or with a box that outlives it`() {
        let (first, second) = (FreeingThread(), FreeingThread())
        nonisolated(unsafe) var outliving: LoopBound<Resident>?
        nonisolated(unsafe) var owner: CInt = 0
        onFreshThread {
            let loop = EventRunLoop.current
            owner = stall_gettid()
            nonisolated(unsafe) var box: LoopBound? = LoopBound(Resident(first), to: loop)
            outliving = LoopBound(Resident(second), to: loop)
            onFreshThread { box = nil }
            #expect(first.number == 0, "the loop does not run")
        }
        #expect(first.number == owner)
        #expect(second.number == 0)
        outliving = nil
        #expect(second.number == stall_gettid())
    }

    @Test func `what it holds may use the loop when it is freed`() throws {
        let census = Probe.Census()
        let thread = try LoopThread()
        for isElsewhere in [false, true] {
            try thread.loop.performAndWait {
                nonisolated(unsafe) var box: LoopBound? = LoopBound(
                    Probe(thread.loop, census), to: thread.loop)
                #expect(box != nil)
                if isElsewhere { onFreshThread { box = nil } } else { box = nil }
            }
        }
        thread.stop()
        #expect(census.alive == 0)
        #expect(census.underLock == 0)
    }

    @Test func `handlers that the end of the thread calls may use it`() {
        nonisolated(unsafe) var seen = 0
        onFreshThread {
            let loop = EventRunLoop.current
            let box = LoopBound(7, to: loop)
            loop.add(LoopSource(onCancel: { _, _ in seen = box.value }) { _ in }, toMode: .default)
        }
        #expect(seen == 7)
    }

    @Test func `use on another thread, and use inside of use, end the process`() async throws {
        var result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let box = LoopBound(1, to: .current)
            onFreshThread { box.value = 2 }
        }
        try Self.expect(result, says: "was used on another thread")
        result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            onFreshThread {
                let box = LoopBound(1, to: .current)
                box.withValue { $0 = box.value }
            }
        }
        try Self.expect(result, says: "was used inside of another use of it")
    }

    @Test func `a main-actor handler on another loop ends the process, saying so`() async throws {
        var result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            onFreshThread { EventRunLoop.current.post { @MainActor in exit(0) } }
        }
        try Self.expect(result, says: "only EventRunLoop.main can call it")
        result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            onFreshThread {
                let loop = EventRunLoop.current
                loop.add(LoopTimer(after: .zero) { @MainActor _ in exit(0) }, toMode: .default)
                loop.run(for: .seconds(60))
            }
        }
        try Self.expect(result, says: "only EventRunLoop.main can call it")
    }

    private static func expect(_ result: ExitTest.Result?, says text: String) throws {
        let errors = try #require(result).standardErrorContent
        #expect(String(decoding: errors, as: UTF8.self).contains(text))
    }
}

/// The thread that freed something; 0 before that.
private final class FreeingThread: Sendable {
    private let value = Mutex<CInt>(0)
    var number: CInt {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
