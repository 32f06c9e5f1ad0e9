import Glibc
import StallModel
import Synchronization
import Testing

@testable import StallAgent

/// Goal: a callback that never returns loses only its own later calls: other callbacks, reports and `stop` continue,
/// and calls that were not made are counted.
/// Method: the test owns the clock by which callbacks are late, and the semaphore that blocks one of them.
@Suite struct StallNotifierTests {
    final class Clock: Sendable {
        let time = Atomic<UInt64>(1_000_000_000)
        func advance(_ duration: Duration) {
            time.wrappingAdd(UInt64(duration / .nanoseconds(1)), ordering: .relaxed)
        }
    }

    let clock = Clock()
    let notifier: StallNotifier
    /// The durations passed to callbacks, in milliseconds.
    let heard: AsyncStream<Int>
    private let hear: AsyncStream<Int>.Continuation

    init() {
        (heard, hear) = AsyncStream.makeStream(of: Int.self)
        let clock = clock
        notifier = StallNotifier(deadline: .seconds(5)) {
            MonotonicInstant(nanoseconds: clock.time.load(ordering: .relaxed))
        }
    }

    func report(_ milliseconds: Int) -> StallReport {
        let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
        return StallReport(
            id: run.id, run: run, loop: "main", mode: "default", phase: .timer, start: run.started,
            duration: .milliseconds(milliseconds), threshold: .milliseconds(250), state: .ended)
    }

    /// A callback that says 0 and then waits until the door is closed.
    func addStuckCallback() -> BoundedQueue<Void> {
        let hear = hear
        let door = BoundedQueue<Void>(capacity: 1)
        notifier.add(state: .ended) { _ in
            hear.yield(0)
            door.pop()
        }
        return door
    }

    @Test func `a callback runs with the signal mask of who asked for it`() {
        let seen = Mutex<[Bool]>([])
        var mask = sigset_t()
        sigemptyset(&mask)
        sigaddset(&mask, SIGUSR2)
        SignalMask(mask).run {
            notifier.add(state: .ended) { _ in
                var now = sigset_t()
                pthread_sigmask(SIG_SETMASK, nil, &now)
                let blocked = [SIGTERM, SIGUSR2].map { sigismember(&now, $0) == 1 }
                seen.withLock { $0 = blocked }
            }
        }
        notifier.notify(report(1))
        notifier.stop()
        #expect(seen.withLock { $0 } == [false, true])
    }

    @Test func `every callback is called, in order, before the end`() async {
        let hear = hear
        notifier.add(state: .ended) { hear.yield(Int($0.duration.milliseconds)) }
        notifier.add(state: .ended) { hear.yield(-Int($0.duration.milliseconds)) }
        notifier.add(state: .open) { _ in hear.yield(0) }
        for length in 1...3 { notifier.notify(report(length)) }
        notifier.stop()
        hear.finish()
        #expect(await heard.reduce(into: []) { $0.append($1) } == [1, -1, 2, -2, 3, -3])
        #expect(notifier.takeMissed() == 0)
    }

    @Test func `a callback that never returns is left alone, and the others go on`() async {
        let hear = hear
        let door = addStuckCallback()
        notifier.add(state: .ended) { hear.yield(Int($0.duration.milliseconds)) }
        var heard = heard.makeAsyncIterator()
        notifier.notify(report(1))
        #expect(await heard.next() == 0)
        clock.advance(.seconds(4))
        notifier.notify(report(2))
        #expect(notifier.takeMissed() == 0, "it still has a second")
        clock.advance(.seconds(1))
        notifier.notify(report(3))
        for length in 1...3 { #expect(await heard.next() == length) }
        #expect(notifier.takeMissed() == 1)
        notifier.stop()
        // When it comes back after all, its thread ends and does nothing any more.
        door.close()
    }

    @Test func `stopping does not wait for a callback longer than its deadline`() async {
        let door = addStuckCallback()
        var heard = heard.makeAsyncIterator()
        notifier.notify(report(1))
        #expect(await heard.next() == 0)
        clock.advance(.seconds(6))
        notifier.stop()
        #expect(notifier.takeMissed() == 1)
        door.close()
    }

    @Test func `more than wait are dropped and counted`() async {
        let door = addStuckCallback()
        var heard = heard.makeAsyncIterator()
        notifier.notify(report(1))
        #expect(await heard.next() == 0)
        for length in 0..<70 { notifier.notify(report(length)) }
        #expect(notifier.takeMissed() == 6)
        door.close()
        notifier.stop()
    }
}
