import CLinux
import StallModel
import Synchronization
import Testing

@testable import StallAgent

/// Goal: a queue's beacon is busy while one item has been running for long, from about when it began, and never
/// otherwise; an idle queue is not touched.
/// Method: the test owns the clock and simulates the queue and its probes.
@Suite struct QueueProbeTests {
    /// A queue that does what the test says.
    final class PlayedQueue: ProbeTarget {
        private let state = Mutex<(poll: ProbeResult?, probes: [@Sendable () -> Void])>(
            (.idle, []))
        let mustAnswerFirst: Bool
        /// How long enqueuing a probe takes, in milliseconds.
        let postTime = Atomic<UInt64>(0)
        let time = Atomic<UInt64>(1_000_000_000)

        init(mustAnswerFirst: Bool = false) { self.mustAnswerFirst = mustAnswerFirst }

        func poll() -> ProbeResult? { state.withLock { $0.poll } }
        func post(_ probe: @escaping @Sendable () -> Void) {
            time.wrappingAdd(postTime.load(ordering: .relaxed) * 1_000_000, ordering: .relaxed)
            state.withLock { $0.probes.append(probe) }
        }

        func shows(_ poll: ProbeResult?) { state.withLock { $0.poll = poll } }
        var pendingProbes: Int { state.withLock { $0.probes.count } }
        func runProbes() {
            let probes = state.withLock { state in
                defer { state.probes = [] }
                return state.probes
            }
            for probe in probes { probe() }
        }
    }

    let queue: PlayedQueue
    let beacon = SharedBeacon()!
    let heartbeat: QueueProbe

    init() { self.init(mustAnswerFirst: false) }

    init(mustAnswerFirst: Bool) {
        let queue = PlayedQueue(mustAnswerFirst: mustAnswerFirst)
        self.queue = queue
        // An eighth of the threshold: 10 ms.
        heartbeat = QueueProbe(queue, beacon: beacon, threshold: .milliseconds(80)) {
            MonotonicInstant(nanoseconds: queue.time.load(ordering: .relaxed))
        }
    }

    /// Lets a period pass and ticks.
    @discardableResult
    func tick(_ poll: ProbeResult?, after milliseconds: UInt64 = 10) -> Bool {
        queue.time.wrappingAdd(milliseconds * 1_000_000, ordering: .relaxed)
        queue.shows(poll)
        return heartbeat.tick()
    }

    var status: UInt64 { stall_beacon_word(beacon.pointer) >> 56 }
    /// Since when the beacon has its status, in milliseconds from the test's start.
    var since: UInt64 {
        ((stall_beacon_word(beacon.pointer) & (1 << 56 - 1)) - 1_000_000_000) / 1_000_000
    }
    let busy = UInt64(STALL_LOOP_BUSY)

    @Test func `an idle or suspended queue is never touched`() {
        for _ in 0..<5 {
            tick(.idle)
            tick(.halted)
        }
        #expect(queue.pendingProbes == 0 && status != busy)
    }

    @Test func `an item that stays is busy from between the polls before and after its begin`() {
        tick(.idle)
        tick(.working(head: 0))  // at 20 ms
        #expect(queue.pendingProbes == 1 && status != busy)
        tick(.working(head: 0))
        #expect(status == busy && since == 15)
        tick(.working(head: 0))
        #expect(status == busy && since == 15 && queue.pendingProbes == 1, "one beat at a time")
        queue.time.wrappingAdd(3_000_000, ordering: .relaxed)
        queue.runProbes()
        #expect(status == UInt64(STALL_LOOP_WAITING) && since == 43)
    }

    @Test func `a busy queue whose beats run in time is not busy for the watchdog`() {
        for _ in 0..<20 {
            tick(.working(head: 0))
            queue.runProbes()
        }
        #expect(status != busy)
    }

    @Test func `an item began after the last beat that ran`() {
        tick(.working(head: 0))
        queue.time.wrappingAdd(8_000_000, ordering: .relaxed)
        queue.runProbes()  // at 18 ms
        tick(.working(head: 0), after: 2)
        tick(.working(head: 0))
        #expect(status == busy && since == 19)
    }

    @Test func `a long list of short items is progress`() {
        tick(.idle)
        for head in 1..<40 {
            tick(.working(head: UInt64(head)))
            #expect(status != busy || heartbeatAge <= 10)
        }
    }

    var heartbeatAge: UInt64 {
        (queue.time.load(ordering: .relaxed) - 1_000_000_000) / 1_000_000 - since
    }

    @Test func `a queue that is suspended midway is not busy until it resumes`() {
        tick(.idle)
        for _ in 0..<3 { tick(.working(head: 7)) }
        #expect(status == busy)
        tick(.halted)
        #expect(status == UInt64(STALL_LOOP_WAITING))
        for _ in 0..<2 { tick(.working(head: 7)) }
        #expect(status == busy && since == 55)
    }

    @Test func `a queue that has long been idle is polled half as often, until it is busy`() {
        func spacing() -> Double {
            let now = queue.time.load(ordering: .relaxed)
            return (heartbeat.nextTick - MonotonicInstant(nanoseconds: now)).milliseconds
        }
        for _ in 0..<39 { tick(.idle) }
        #expect(spacing() == 10)
        tick(.idle)
        #expect(spacing() == 20)
        tick(.working(head: 0), after: 20)  // at 420 ms
        #expect(spacing() == 10)
        tick(.working(head: 0))
        #expect(status == busy && since == 410, "the middle of the longer time")
    }

    @Test func `a thread that could not poll attributes that time to no queue`() {
        tick(.idle)
        tick(.working(head: 0), after: 500)
        tick(.working(head: 0))
        #expect(status == busy && since == 510)
    }

    @Test func `a main queue that is not served yet is probed, and not busy`() {
        let test = QueueProbeTests(mustAnswerFirst: true)
        for _ in 0..<10 { test.tick(.unknown) }
        #expect(test.queue.pendingProbes == 1 && test.status != busy)
        test.queue.runProbes()
        for _ in 0..<3 { test.tick(.unknown) }
        #expect(test.status == busy)
    }

    @Test func `where only the probe is known to wait, it waits from when it was enqueued`() {
        queue.postTime.store(60, ordering: .relaxed)
        tick(.unknown)  // from 10 to 70 ms
        tick(.unknown)
        #expect(status == busy && since == 70)
    }

    @Test func `a queue that is gone is left alone`() {
        tick(.idle)
        #expect(!tick(nil))
    }
}
