import Dispatch
import Glibc
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: an item that a handler moves to the loop of another thread belongs to that loop at once, and its lock guards
/// it. Method: the other loop sleeps, or is held by a task, so that what it does is no matter of luck. The limits on
/// waiting are reached only by a loop that never wakes up.
@Suite struct MovedItemsTests {
    private static var limit: DispatchTime { .now() + 20 }

    @Test func `a repeating timer that its handler moves to a sleeping loop goes on there`() throws
    {
        let other = try LoopThread(name: "other")
        defer { other.stop() }
        let calledThere = DispatchSemaphore(value: 0)
        onFreshThread {
            let loop = EventRunLoop.current
            loop.schedule(every: .nanoseconds(1)) { timer in
                guard loop.isCurrent else {
                    timer.invalidate()
                    calledThere.signal()
                    return
                }
                loop.remove(timer, fromMode: .default)
                while !other.loop.isWaiting { sched_yield() }
                other.loop.add(timer, toMode: .default)
                // It is there, but not to be called before this handler has returned.
                other.loop.lock.lock()
                #expect(other.loop.defaultItems.timers.pointee.earliest == .max)
                other.loop.lock.unlock()
            }
            #expect(loop.run(mode: .default) == .finished)
        }
        #expect(calledThere.wait(timeout: Self.limit) == .success)
    }

    /// Removed from the only mode that it is in; as a common item it stays with the loop nevertheless.
    @Test(arguments: [LoopMode.default, .common])
    func `a due timer that an earlier handler removes from the mode is not called`(mode: LoopMode) {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var later: LoopTimer?
            nonisolated(unsafe) var calls = (earlier: 0, later: 0)
            let start = MonotonicInstant(nanoseconds: 1)
            let earlier = LoopTimer(at: start) { _ in
                calls.earlier += 1
                loop.remove(later!, fromMode: .default)
            }
            later = LoopTimer(at: start) { _ in calls.later += 1 }
            loop.add(earlier, toMode: .default)
            loop.add(later!, toMode: mode)
            loop.run(mode: .default, for: .zero)
            #expect(calls == (1, 0))
            #expect(loop.contains(later!, inMode: mode) == (mode == .common))
            later?.invalidate()
        }
    }

    @Test(arguments: [nil, Duration.milliseconds(1)])
    func `a due timer that an earlier handler moves away is not called by the loop it left`(
        interval: Duration?
    ) throws {
        let other = try LoopThread(name: "other")
        let (isHeld, letGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        try other.submit {
            isHeld.signal()
            letGo.wait()
        }
        isHeld.wait()
        let called = DispatchSemaphore(value: 0)
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var later: LoopTimer?
            let earlier = LoopTimer(after: .zero) { _ in
                loop.remove(later!, fromMode: .default)
                other.loop.add(later!, toMode: .default)
            }
            later = LoopTimer(after: .zero, every: interval) { timer in
                #expect(!loop.isCurrent)
                timer.invalidate()
                called.signal()
            }
            loop.add(earlier, toMode: .default)
            loop.add(later!, toMode: .default)
            #expect(loop.run(mode: .default) == .finished)
        }
        letGo.signal()
        #expect(called.wait(timeout: Self.limit) == .success)
        other.stop()
    }

    /// Also for ThreadSanitizer, which sees an access under the wrong lock.
    @Test func `timers that go back and forth between two loops do no harm to others there`() throws
    {
        let threads = try [LoopThread(name: "one"), LoopThread(name: "two")]
        let (first, second) = (threads[0].loop, threads[1].loop)
        let (timerCount, moves) = (8, 300)
        let finished = DispatchSemaphore(value: 0)
        for _ in 0..<timerCount {
            nonisolated(unsafe) var moved = 0
            let timer = LoopTimer(after: .zero, every: .nanoseconds(1)) { timer in
                let (here, there) = first.isCurrent ? (first, second) : (second, first)
                moved += 1
                guard moved < moves else {
                    timer.invalidate()
                    finished.signal()
                    return
                }
                here.remove(timer, fromMode: .default)
                there.add(timer, toMode: .default)
            }
            first.add(timer, toMode: .default)
        }
        let limit = Self.limit
        let others = (0..<timerCount).reduce(into: 0) { count, _ in
            while finished.wait(timeout: .now()) == .timedOut && DispatchTime.now() < limit {
                let held = (0..<10).map { _ in LoopTimer(after: .seconds(100)) { _ in } }
                for (index, timer) in held.enumerated() {
                    (index < 5 ? first : second).add(timer, toMode: .default)
                }
                for timer in held { timer.invalidate() }
                count += 1
            }
        }
        #expect(others > 0)
        for thread in threads {
            #expect(thread.loop.nextTimerFire() == nil, "a timer was lost on its way")
            thread.stop()
        }
    }

    /// The mark that an observer's handler runs is read by the loop that it was moved to.
    @Test func `an observer that its handler moves to another loop is called there`() throws {
        let other = try LoopThread(name: "other")
        defer { other.stop() }
        let calledThere = DispatchSemaphore(value: 0)
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            let observer = LoopObserver(activities: [.beforeTimers]) { observer, _ in
                guard loop.isCurrent else {
                    observer.invalidate()
                    calledThere.signal()
                    return
                }
                loop.remove(observer, fromMode: .default)
                other.loop.add(observer, toMode: .default)
            }
            loop.add(observer, toMode: .default)
            #expect(loop.run(mode: .default, for: .zero) == .timedOut)
        }
        other.loop.wakeUp()
        #expect(calledThere.wait(timeout: Self.limit) == .success)
    }
}
