import CLinux
import Dispatch
import StallModel
import Testing

@testable import StallDetection

/// Goal: the watchdog's thread detects a stall, is woken at its end, and sleeps while every loop waits.
/// Method: the test is the loop. It publishes instants of the past, so that everything is due at once and nothing needs
/// to sleep; the watchdog's events arrive through a stream.
@Suite struct WatchdogTests {
    /// Answers every query in the same way and forwards events: each incident with the number of its samples, except
    /// late ones.
    final class Recorder: StallResponder, @unchecked Sendable {
        // Unchecked because only the watchdog's thread calls it.
        let reported: AsyncStream<(StallIncident, Int)>.Continuation
        private var samples = 0
        init(reported: AsyncStream<(StallIncident, Int)>.Continuation) { self.reported = reported }
        func evidence(isSuspect: Bool) -> ThreadEvidence {
            ThreadEvidence(cpuTime: .zero, state: UInt8(ascii: "S"))
        }
        func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {
            samples += 1
        }
        func discardSamples(_ kind: IncidentKind) { samples = 0 }
        func measured(from first: LoopCounters, to last: LoopCounters) -> Bool { true }
        func stallChanged(_ incident: StallIncident) { reported.yield((incident, samples)) }
    }

    struct Beacon: @unchecked Sendable {
        let pointer = stall_beacon_create()!
        func publish(_ status: LoopStatus, at time: MonotonicInstant) {
            stall_beacon_publish(pointer, status.rawValue, time.nanoseconds)
        }
        func awake(at time: MonotonicInstant) {
            stall_beacon_publish_awake(pointer, time.nanoseconds)
        }
    }

    var now: MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    @Test func `a stall is reported while it lasts and ends with the loop's own time`() async throws
    {
        let beacon = Beacon()
        let (stream, reported) = AsyncStream.makeStream(of: (StallIncident, Int).self)
        let watchdog = try #require(Watchdog())
        let loop = WatchedLoop(
            name: "main", beacon: LoopBeacon(beacon.pointer),
            policies: ModePolicies(DetectionPolicy(threshold: .milliseconds(250))),
            responder: Recorder(reported: reported))
        watchdog.watch(loop)

        let began = now + .milliseconds(-700)
        beacon.awake(at: began)
        let (first, samples) = try #require(await stream.first { _ in true })
        #expect(first.began == began && !first.hasEnded && first.duration >= .milliseconds(700))
        #expect(samples == 1)

        // Later than any report of it so far.
        let end = now + .seconds(2)
        beacon.publish(.waiting, at: end)
        // Refreshed durations may come before the end.
        let (last, _) = try #require(await stream.first { $0.0.hasEnded })
        #expect(last.began == began && last.duration == end - began)
        watchdog.stop()
        stall_beacon_release(beacon.pointer)
    }

    @Test func `a stop ends what is open`() async throws {
        let beacon = Beacon()
        beacon.publish(.busy, at: now + .milliseconds(-400))
        let (stream, reported) = AsyncStream.makeStream(of: (StallIncident, Int).self)
        let watchdog = try #require(Watchdog())
        watchdog.watch(
            WatchedLoop(
                name: "main", beacon: LoopBeacon(beacon.pointer),
                policies: ModePolicies(DetectionPolicy(threshold: .milliseconds(250))),
                responder: Recorder(reported: reported)))
        #expect(await stream.first { _ in true }?.0.hasEnded == false)
        watchdog.stop()
        #expect(await stream.first { $0.0.hasEnded } != nil)
        stall_beacon_release(beacon.pointer)
    }

    /// The loop moves on while its thread is being read, as when the watchdog has no CPU in between.
    final class Mover: StallResponder, @unchecked Sendable {
        // Unchecked because only the watchdog's thread calls it until the watchdog has stopped.
        private let beacon: Beacon
        private let end: MonotonicInstant
        /// At which suspicious poll it resumes.
        private let moves: Int
        /// What the kernel has booked from then on.
        private let delay: Duration
        private let asked: AsyncStream<Bool>.Continuation
        private var looks = 0
        var incidents: [StallIncident] = []

        init(
            _ beacon: Beacon, until end: MonotonicInstant, atLook moves: Int, delay: Duration,
            _ asked: AsyncStream<Bool>.Continuation
        ) {
            (self.beacon, self.end, self.moves) = (beacon, end, moves)
            (self.delay, self.asked) = (delay, asked)
        }
        func evidence(isSuspect: Bool) -> ThreadEvidence {
            guard isSuspect, looks < moves else {
                if looks >= moves { asked.yield(true) }
                return ThreadEvidence(cpuTime: .zero, runDelay: looks < moves ? .zero : delay)
            }
            looks += 1
            if looks == moves { beacon.publish(.waiting, at: end) }
            return ThreadEvidence(
                cpuTime: .zero, runDelay: .zero, state: UInt8(ascii: "R"), waitsForCPU: true)
        }
        func takeSample(_: IncidentKind, of _: LoopReading, within _: Duration) {}
        func discardSamples(_ kind: IncidentKind) {}
        func measured(from first: LoopCounters, to last: LoopCounters) -> Bool { true }
        func stallChanged(_ incident: StallIncident) { incidents.append(incident) }
    }

    /// - Parameters:
    ///   - busy: How long the loop was busy, of which it waited for a CPU for `delay`.
    ///   - moves: At which suspicious poll it resumes.
    private func verdicts(
        busy: Duration, delay: Duration, movesAtLook moves: Int
    ) async throws -> [StallVerdict] {
        let beacon = Beacon()
        defer { stall_beacon_release(beacon.pointer) }
        let (stream, asked) = AsyncStream.makeStream(of: Bool.self)
        let watchdog = try #require(Watchdog())
        let began = now + .milliseconds(-700)
        let mover = Mover(beacon, until: began + busy, atLook: moves, delay: delay, asked)
        watchdog.watch(
            WatchedLoop(
                name: "main", beacon: LoopBeacon(beacon.pointer),
                policies: ModePolicies(DetectionPolicy(threshold: .milliseconds(250))),
                responder: mover))
        beacon.awake(at: began)
        #expect(await stream.first { _ in true } == true)
        watchdog.stop()
        return mover.incidents.map(\.verdict)
    }

    @Test func `what was read of a thread that has moved on is not held against it`() async throws {
        let ended = try await verdicts(busy: .milliseconds(12), delay: .zero, movesAtLook: 1)
        #expect(ended.isEmpty)
    }

    @Test func `a stall that ends during its first poll is reported by that poll`() async throws {
        let ended = try await verdicts(busy: .milliseconds(600), delay: .zero, movesAtLook: 1)
        #expect(ended == [.stalled])
    }

    @Test func `a wait for the CPU that is booked when the loop moves on is not its own time`()
        async throws
    {
        let queued = try await verdicts(
            busy: .milliseconds(600), delay: .milliseconds(590), movesAtLook: 2)
        #expect(!queued.contains(.stalled))
    }

    /// Its watchdog is held in the first preparation.
    final class Preparer: StallResponder, @unchecked Sendable {
        // Unchecked because only the watchdog's thread calls it, and the test reads it afterwards.
        let (isHeld, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        private(set) var count = 0
        func prepare() {
            count += 1
            guard count == 1 else { return }
            isHeld.signal()
            mayGoOn.wait()
        }
        func evidence(isSuspect: Bool) -> ThreadEvidence { ThreadEvidence(cpuTime: .zero) }
        func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {}
        func measured(from first: LoopCounters, to last: LoopCounters) -> Bool { true }
        func stallChanged(_ incident: StallIncident) {}
    }

    private func loop(_ beacon: Beacon, _ responder: any StallResponder) -> WatchedLoop {
        WatchedLoop(
            name: "main", beacon: LoopBeacon(beacon.pointer),
            policies: ModePolicies(DetectionPolicy(threshold: .seconds(100))), responder: responder)
    }

    @Test func `watches that end before the watchdog sees them cost it nothing, and have a limit`()
        throws
    {
        let (beacon, preparer) = (Beacon(), Preparer())
        defer { stall_beacon_release(beacon.pointer) }
        let watchdog = try #require(Watchdog())
        watchdog.watch(loop(beacon, preparer))
        preparer.isHeld.wait()
        var refusals: [Watchdog.Refusal?] = []
        for _ in 0..<WatchdogInbox.watchLimit + 10 {
            let short = loop(beacon, preparer)
            refusals.append(watchdog.watch(short))
            if refusals.last == .some(nil) { watchdog.unwatch(short) }
        }
        #expect(refusals.filter { $0 == .tooManyRequests }.count == 10)
        #expect(watchdog.takeRefused() == 10 && watchdog.takeRefused() == 0)
        preparer.mayGoOn.signal()
        watchdog.stop()
        #expect(preparer.count == 1)
        #expect(watchdog.watch(loop(beacon, preparer)) == nil)
    }

    final class Plain: StallResponder {
        func evidence(isSuspect: Bool) -> ThreadEvidence { ThreadEvidence(cpuTime: .zero) }
        func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {}
        func measured(from first: LoopCounters, to last: LoopCounters) -> Bool { true }
        func stallChanged(_ incident: StallIncident) {}
    }

    /// A responder holds descriptors, and an app's last request may be long ago.
    @Test(arguments: [true, false])
    func `the thread that frees is woken when a watch has ended`(isSeen: Bool) throws {
        let (beacon, preparer) = (Beacon(), Preparer())
        let collector = stall_wakeup_create()!
        let watchdog = try #require(Watchdog())
        watchdog.setCollector(collector)
        stall_wakeup_prepare(collector, UInt32(STALL_WATCHDOG_TIMED_WAIT))
        var responder = isSeen ? preparer as any StallResponder : Plain()
        let first = loop(beacon, preparer)
        watchdog.watch(first)
        preparer.isHeld.wait()
        if isSeen {
            watchdog.unwatch(first)
        } else {
            let short = loop(beacon, responder)
            watchdog.watch(short)
            watchdog.unwatch(short)
        }
        preparer.mayGoOn.signal()
        weak var freed = responder
        responder = Plain()
        let deadline = now + .seconds(10)
        stall_wakeup_wait(collector, UInt32(STALL_WATCHDOG_TIMED_WAIT), deadline.nanoseconds)
        #expect(now < deadline)
        watchdog.collect()
        #expect(isSeen || freed == nil)
        #expect(!watchdog.hasSpent)
        watchdog.stop()
        stall_beacon_release(beacon.pointer)
    }

    @Test func `a watch that ends with a stall of its own is seen`() throws {
        let (first, beacon, preparer) = (Beacon(), Beacon(), Preparer())
        let watchdog = try #require(Watchdog())
        watchdog.watch(loop(first, preparer))
        preparer.isHeld.wait()
        let short = loop(beacon, preparer)
        watchdog.watch(short)
        beacon.awake(at: now + .seconds(-200))
        beacon.publish(.waiting, at: now)
        watchdog.unwatch(short)
        preparer.mayGoOn.signal()
        watchdog.stop()
        #expect(preparer.count == 2)
        for beacon in [first, beacon] { stall_beacon_release(beacon.pointer) }
    }

    @Test func `a watch that comes after the stop takes no room in its loop`() throws {
        let (beacon, preparer) = (Beacon(), Preparer())
        defer { stall_beacon_release(beacon.pointer) }
        let watchdog = try #require(Watchdog())
        watchdog.stop()
        watchdog.watch(loop(beacon, preparer))
        for _ in 0..<STALL_WATCHER_LIMIT {
            #expect(stall_beacon_join(beacon.pointer, stall_wakeup_create()!, 1_000_000))
        }
    }

    @Test func `a loop that wakes as many watchdogs as it can refuses another`() throws {
        let (beacon, preparer) = (Beacon(), Preparer())
        defer { stall_beacon_release(beacon.pointer) }
        preparer.mayGoOn.signal()
        for _ in 0..<STALL_WATCHER_LIMIT {
            #expect(stall_beacon_join(beacon.pointer, stall_wakeup_create()!, 1_000_000))
        }
        let watchdog = try #require(Watchdog())
        #expect(watchdog.watch(loop(beacon, preparer)) == .noRoomInLoop)
        watchdog.stop()
        #expect(watchdog.takeRefused() == 1 && preparer.count == 0)
    }

    @Test func `requests arrive in their order from many threads`() async {
        let inbox = WatchdogInbox()
        let beacon = Beacon()
        let (_, reported) = AsyncStream.makeStream(of: (StallIncident, Int).self)
        let loops = (0..<400).map {
            WatchedLoop(
                name: "main", beacon: LoopBeacon(beacon.pointer),
                policies: ModePolicies(DetectionPolicy(threshold: .milliseconds($0 + 50))),
                responder: Recorder(reported: reported))
        }
        await withTaskGroup(of: Void.self) { group in
            for producer in 0..<4 {
                group.addTask {
                    for index in 0..<100 { inbox.push(.unwatch(loops[producer * 100 + index])) }
                }
            }
        }
        var names: [Int] = []
        var next = inbox.takeAll()
        while let entry = next {
            next = inbox.next(after: entry)
            if case .unwatch(let loop) = entry.request {
                names.append(Int(loop.policies.base.threshold.milliseconds) - 50)
            }
            inbox.retire(entry)
        }
        #expect(inbox.isEmpty)
        inbox.collect()
        #expect(names.count == 400)
        for producer in 0..<4 {
            let expected = Array(producer * 100..<producer * 100 + 100)
            #expect(names.filter { $0 / 100 == producer } == expected)
        }
        stall_beacon_release(beacon.pointer)
    }

    @Test func `a reading survives the wrap of the 56-bit clock`() {
        let now = MonotonicInstant(nanoseconds: 1 << 57 + 5)
        let reading = LoopReading(word: stall_beacon_pack(1, 1 << 57 - 10), now: now)
        #expect(reading.since.nanoseconds == 1 << 57 - 10)
        #expect(reading.status == .busy)
    }

    @Test func `a label is read whole or cut at a character`() {
        let beacon = Beacon()
        let loop = LoopBeacon(beacon.pointer)
        #expect(loop.label == nil)
        loop.writeLabel("open album")
        #expect(loop.label == "open album")
        loop.writeLabel(String(repeating: "é", count: 60))
        #expect(loop.label == String(repeating: "é", count: 31))
        loop.writeLabel(nil)
        #expect(loop.label == nil)
        stall_beacon_release(beacon.pointer)
    }
}
