import CLinux
import StallModel
import Testing
import TestSupport

@testable import StallDetection

private let start = MonotonicInstant(nanoseconds: 1_000_000_000)

/// A thread that is blocked: it uses no CPU.
private let blocked = ThreadEvidence(cpuTime: .seconds(1), state: UInt8(ascii: "S"))

/// Nothing of the process ran from one millisecond to another.
private func absent(from: Int, to: Int) -> SuspendedIntervals {
    var suspendedIntervals = SuspendedIntervals()
    suspendedIntervals.note(from: at(from), to: at(to), .milliseconds(to - from))
    return suspendedIntervals
}

private func at(_ milliseconds: Int) -> MonotonicInstant { start + .milliseconds(milliseconds) }

private func busy(since milliseconds: Int) -> LoopReading {
    LoopReading(status: .busy, since: at(milliseconds))
}

private func waiting(since milliseconds: Int) -> LoopReading {
    LoopReading(status: .waiting, since: at(milliseconds))
}

/// A thread that has used `milliseconds` of CPU since the start, and wants more.
private func running(_ milliseconds: Int) -> ThreadEvidence {
    ThreadEvidence(cpuTime: .seconds(1) + .milliseconds(milliseconds), state: UInt8(ascii: "R"))
}

/// Goal: the line between busy and stalled is exact, waiting is never a stall, and what is reported of a stall is
/// correct.
/// Method: the test owns the clock and simulates the loop and its thread. Nothing sleeps.
@Suite struct StallDetectorTests {
    var detector = StallDetector(policy: DetectionPolicy(threshold: .milliseconds(250)))

    /// Follows the detector's own deadlines, as the watchdog does, while the loop stays busy since `start`.
    mutating func follow(
        until end: Int, evidence: (Int) -> ThreadEvidence,
        each: (Int, StallStep) -> Void = { _, _ in }
    ) {
        var now = 0
        while now <= end {
            each(now, detector.poll(busy(since: 0), evidence(now), at: at(now)))
            now = Int((detector.nextPoll! - start).milliseconds.rounded(.up))
        }
    }

    @Test(arguments: [(elapsed: 0, stalls: false), (249, false), (250, true), (86_400_000, true)])
    mutating func `a callback stalls at the threshold, not before`(elapsed: Int, stalls: Bool) {
        let step = detector.poll(busy(since: 0), blocked, at: at(elapsed))
        #expect((step.incident != nil) == stalls)
    }

    @Test(arguments: [LoopStatus.waiting, .idle])
    mutating func `a loop that does not run callbacks never stalls`(status: LoopStatus) {
        let reading = LoopReading(status: status, since: start)
        for elapsed in [0, 250, 1_000, 86_400_000] {
            #expect(detector.poll(reading, blocked, at: at(elapsed)).incident == nil)
        }
        #expect(detector.nextPoll == nil, "a loop that sleeps on wakes the watchdog itself")
    }

    @Test mutating func `a loop that makes progress is busy, not stalled`() {
        for elapsed in stride(from: 0, to: 10_000, by: 100) {
            let step = detector.poll(busy(since: elapsed), running(elapsed), at: at(elapsed + 99))
            #expect(step.incident == nil && !step.takesSample)
        }
    }

    @Test mutating func `it polls exactly at half the threshold and at the threshold`() {
        _ = detector.poll(busy(since: 0), blocked, at: at(1))
        #expect(detector.nextPoll == at(125))
        var times: [Int] = []
        follow(until: 250, evidence: { _ in blocked }) { now, _ in times.append(now) }
        #expect(times.contains(125) && times.contains(250))
        #expect(
            zip(times.drop { $0 < 125 }.dropFirst(), times.drop { $0 < 125 }).allSatisfy {
                $0 - $1 <= 32
            },
            "a stop of the process between two looks is not seen: they are close")
    }

    @Test
    mutating func `samples begin at half the threshold and double their spacing up to a second`() {
        var samples: [Int] = []
        follow(until: 100_000, evidence: { _ in blocked }) { now, step in
            if step.takesSample { samples.append(now) }
        }
        #expect(samples.prefix(6) == [125, 157, 220, 345, 595, 1095])
        #expect(zip(samples.dropFirst(6), samples.dropFirst(5)).allSatisfy { $0 - $1 == 1000 })
        #expect(samples.count == 32)
    }

    @Test
    mutating func
        `one incident begins, is refreshed every second, and ends with the loop's own time`()
    {
        var reported: [StallIncident] = []
        follow(until: 3_400, evidence: { _ in blocked }) { _, step in
            if let incident = step.incident { reported.append(incident) }
        }
        #expect(reported.map { Int($0.duration.milliseconds) } == [250, 1250, 2250, 3250])
        let last = detector.poll(waiting(since: 3_456), blocked, at: at(9_000), end: at(3_412))
        #expect(last.incident?.duration == .milliseconds(3_412))
        #expect(last.incident?.hasEnded == true && last.dropsSuspicion)
        #expect(Set(reported.map(\.began) + [last.incident!.began]) == [start])
    }

    @Test mutating func `a suspicion that comes to nothing leaves no incident`() {
        let suspicious = detector.poll(busy(since: 0), blocked, at: at(200))
        #expect(suspicious.takesSample && suspicious.incident == nil)
        let step = detector.poll(waiting(since: 240), blocked, at: at(241), end: at(240))
        #expect(step.incident == nil && step.dropsSuspicion)
    }

    @Test mutating func `a stall that ended between two polls is still reported`() {
        _ = detector.poll(busy(since: 0), blocked, at: at(130))
        let step = detector.poll(busy(since: 400), blocked, at: at(460), end: at(400))
        #expect(step.incident?.duration == .milliseconds(400))
        #expect(step.incident?.hasEnded == true)
    }

    @Test mutating func `a thread that burns the CPU is stalled`() {
        var verdicts: [StallVerdict] = []
        follow(until: 300, evidence: { running($0) }) { _, step in
            if let incident = step.incident { verdicts.append(incident.verdict) }
        }
        #expect(verdicts == [.stalled])
    }

    @Test mutating func `a thread that is ready but gets no CPU is starved, and only late`() {
        var reported: [(Int, StallVerdict)] = []
        _ = detector.poll(waiting(since: -1), running(0), at: at(-1))
        follow(until: 1_100, evidence: { running($0 / 10) }) { now, step in
            if let incident = step.incident { reported.append((now, incident.verdict)) }
        }
        #expect(reported.map(\.1) == [.starved])
        #expect(reported.allSatisfy { $0.0 >= 1_000 })
    }

    @Test mutating func `a starved thread that has burnt the threshold after all is stalled`() {
        _ = detector.poll(waiting(since: -1), running(0), at: at(-1))
        follow(until: 990, evidence: { running($0 / 2) })
        let step = detector.poll(waiting(since: 995), running(500), at: at(995), end: at(995))
        #expect(step.incident?.verdict == .stalled)
    }

    /// Between two waits for the disk it waits for a CPU, as most polls see it.
    @Test
    mutating func `time in disk waits counts also if a poll finds the thread in the run queue`() {
        func queueing(_ milliseconds: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .zero, runDelay: .milliseconds(milliseconds / 4),
                state: UInt8(ascii: "R"), waitsForCPU: true)
        }
        _ = detector.poll(
            waiting(since: -1), ThreadEvidence(cpuTime: .zero, runDelay: .zero), at: at(-1))
        follow(until: 480, evidence: queueing)
        let moved = ThreadEvidence(cpuTime: .zero, runDelay: .milliseconds(120))
        let step = detector.poll(waiting(since: 480), moved, at: at(481), end: at(480))
        #expect(step.incident?.verdict == .stalled)
        #expect(step.incident?.duration == .milliseconds(480))
    }

    /// Writing and syncing alternately: at every poll it runs, for an instant, and never waits for a CPU.
    @Test
    mutating func `a thread that blocks again and again is stalled, though it looks runnable`() {
        func syncing(_ milliseconds: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(milliseconds / 20), runDelay: .milliseconds(3),
                state: UInt8(ascii: "R"))
        }
        _ = detector.poll(waiting(since: -1), syncing(0), at: at(-1))
        var reported: [(Int, StallVerdict)] = []
        follow(until: 300, evidence: syncing) { now, step in
            if let incident = step.incident { reported.append((now, incident.verdict)) }
        }
        #expect(reported.map(\.0) == [250] && reported.map(\.1) == [.stalled])
    }

    @Test mutating func `time that the kernel books as a wait for the CPU is not the thread's`() {
        func sharing(_ milliseconds: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(milliseconds / 4),
                runDelay: .milliseconds(milliseconds * 3 / 4),
                state: UInt8(ascii: "R"), waitsForCPU: milliseconds.isMultiple(of: 2))
        }
        _ = detector.poll(waiting(since: -1), sharing(0), at: at(-1))
        var reported: [StallVerdict] = []
        follow(until: 980, evidence: sharing) { _, step in
            if let incident = step.incident { reported.append(incident.verdict) }
        }
        #expect(
            reported == [], "a quarter of the CPU: the threshold is burnt after four times as long")
    }

    /// A processor of a virtual machine that stands still: the thread waits on it, and the kernel books nothing.
    @Test
    mutating func `a wait for the CPU that two polls see counts, whatever the kernel accounts`() {
        let queueing = ThreadEvidence(
            cpuTime: .milliseconds(12), runDelay: .zero, state: UInt8(ascii: "R"),
            waitsForCPU: true)
        _ = detector.poll(waiting(since: -1), running(0), at: at(-1))
        follow(until: 250, evidence: { _ in queueing })
        let step = detector.poll(
            waiting(since: 262), ThreadEvidence(cpuTime: .milliseconds(22), runDelay: .zero),
            at: at(263), end: at(262))
        #expect(step.incident?.verdict == .starved)
    }

    /// The watchdog lost its CPU between two readings of the thread, found that it had moved, and missed that it queued again.
    @Test
    mutating func
        `a wait for the CPU that a poll missed is subtracted when the kernel accounts it`()
    {
        func computing(_ cpu: Int, queued: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .milliseconds(queued),
                state: UInt8(ascii: "R"))
        }
        _ = detector.poll(waiting(since: -1), computing(0, queued: 0), at: at(-1))
        // It queued from 30 to 168.
        _ = detector.poll(busy(since: 0), computing(30, queued: 0), at: at(160))
        _ = detector.poll(busy(since: 0), computing(32, queued: 138), at: at(170))
        #expect(
            detector.poll(busy(since: 0), computing(162, queued: 138), at: at(300)).incident == nil)
        let step = detector.poll(busy(since: 0), computing(250, queued: 138), at: at(388))
        #expect(step.incident?.verdict == .stalled, "and what it computes counts")
    }

    /// The watchdog lost its CPU in every reading of a thread that is blocked.
    @Test mutating func `readings that are spread are settled by the next one, or by the end`() {
        var spread = ThreadEvidence(
            cpuTime: .zero, runDelay: .zero, state: UInt8(ascii: "S"))
        _ = detector.poll(waiting(since: -1), spread, at: at(-1))
        spread.isSpread = true
        var last = StallStep()
        follow(until: 340, evidence: { _ in spread }) { _, step in last = step }
        #expect(last.incident == nil, "it may have waited for a CPU")
        spread.isSpread = false
        let step = detector.poll(waiting(since: 350), spread, at: at(360), end: at(350))
        #expect(step.incident?.verdict == .stalled)
    }

    /// A job of a task at load 20: 300 ms of its own, in 900 ms.
    @Test mutating func `a stall says how long its thread waited for a CPU`() {
        func queued(_ now: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(now / 3), runDelay: .milliseconds(now - now / 3),
                state: UInt8(ascii: "R"))
        }
        _ = detector.poll(waiting(since: -1), queued(0), at: at(0))
        var reported: [StallIncident] = []
        follow(until: 870, evidence: queued) { _, step in
            if let incident = step.incident { reported.append(incident) }
        }
        let ended = detector.poll(waiting(since: 900), queued(900), at: at(901), end: at(900))
        reported += [ended.incident].compactMap(\.self)
        #expect(reported.last?.verdict == .stalled && reported.last?.hasEnded == true)
        for incident in reported where incident.verdict == .stalled {
            let rest = incident.delayedTime / incident.duration
            #expect(abs(rest - 2.0 / 3) < 0.01)
        }
        #expect(!reported.isEmpty)
    }

    @Test(arguments: [(delay: 0, rest: 0), (10, 0), (20, 20)])
    mutating func `waits of microseconds are no part of a stall`(delay: Int, rest: Int) {
        func evidence(_ delay: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .zero, runDelay: .milliseconds(delay), state: UInt8(ascii: "S"))
        }
        _ = detector.poll(waiting(since: -1), evidence(0), at: at(0))
        _ = detector.poll(busy(since: 0), evidence(0), at: at(130))
        let step = detector.poll(
            waiting(since: 1_000), evidence(delay), at: at(1_001), end: at(1_000))
        #expect(step.incident?.delayedTime == .milliseconds(rest))
    }

    @Test func `the delay of a whole incident is in its verdict`() {
        for verdict in [StallVerdict.starved, .stopped, .throttled, .debugger, .saturated] {
            let incident = StallIncident(
                began: start, duration: .seconds(2), threshold: .milliseconds(250), cpuTime: .zero,
                delayedTime: .seconds(1), detectionDelay: .zero, verdict: verdict, hasEnded: true)
            #expect(incident.delayedTime == .zero)
        }
    }

    @Test func `a stall between polls is not charged with the waits of others`() {
        func delayed(_ busyElsewhere: Int) -> Duration? {
            detector.judgeAfterwards(
                began: at(10), length: .milliseconds(900), threshold: .milliseconds(250),
                history: ThreadHistory(ThreadEvidence(cpuTime: .zero, runDelay: .zero)),
                busyElsewhere: .milliseconds(busyElsewhere),
                ThreadEvidence(cpuTime: .milliseconds(300), runDelay: .milliseconds(600)),
                at: at(2_000), suspendedIntervals: SuspendedIntervals())?.delayedTime
        }
        #expect(delayed(0) == .milliseconds(600))
        // At least so long, whatever the other callouts waited.
        #expect(delayed(30) == .milliseconds(570))
    }

    @Test
    func `a stall between polls is judged by what the thread did since the previous poll`() {
        func judged(
            _ delay: Int, length: Int = 300, cpu: Int = 20, busyElsewhere: Int = 0,
            suspendedIntervals: SuspendedIntervals = SuspendedIntervals()
        ) -> StallVerdict? {
            detector.judgeAfterwards(
                began: at(10), length: .milliseconds(length), threshold: .milliseconds(250),
                history: ThreadHistory(ThreadEvidence(cpuTime: .zero, runDelay: .zero)),
                busyElsewhere: .milliseconds(busyElsewhere),
                ThreadEvidence(cpuTime: .milliseconds(cpu), runDelay: .milliseconds(delay)),
                at: at(10_000), suspendedIntervals: suspendedIntervals)?.verdict
        }
        #expect(judged(0) == .stalled && judged(40) == .stalled)
        #expect(judged(100) == nil && judged(0, length: 249) == nil)
        #expect(judged(0, suspendedIntervals: absent(from: 20, to: 200)) == nil)
        // The watchdog was away for ten seconds, in which the thread has queued and computed in many callouts.
        #expect(judged(6_000, cpu: 3_000, busyElsewhere: 8_700) == nil, "it only queued, perhaps")
        #expect(judged(6_000, cpu: 3_000, busyElsewhere: 2_700) == .stalled, "300 ms of CPU")
        #expect(judged(6_000, length: 1_000, cpu: 3_000, busyElsewhere: 8_700) == .starved)
        #expect(
            judged(0, length: 1_000, suspendedIntervals: absent(from: 20, to: 1_005)) == .stopped)
    }

    /// An actor's job runs the calls of many tasks in turn: what came before the call that is seen may be of others.
    @Test(arguments: [(end: 370, isReported: false), (376, true), (5_000, true)])
    mutating func `a span of several pieces of work is a stall once one of them is long enough`(
        end: Int, isReported: Bool
    ) {
        var incidents: [StallIncident] = []
        var now = at(125)
        while now <= at(end) {
            let step = detector.poll(busy(since: 0), blocked, at: now, undividedSince: at(125))
            incidents += [step.incident].compactMap(\.self)
            now = detector.nextPoll!
        }
        let step = detector.poll(waiting(since: end), blocked, at: at(end + 1), end: at(end))
        incidents += [step.incident].compactMap(\.self)
        #expect(!incidents.isEmpty == isReported)
        if let first = incidents.first, isReported {
            #expect(first.duration >= .milliseconds(371))
        }
    }

    @Test(arguments: [(second: 125, unproven: nil), (250, 175)] as [(Int, Int?)])
    mutating func `a piece of work that two polls saw is passed on if it is in no report`(
        second: Int, unproven: Int?
    ) {
        for now in [125, second] {
            let step = detector.poll(
                busy(since: 0), blocked, at: at(now), undividedSince: at(125))
            #expect(step.incident == nil && step.unprovenTime == nil)
        }
        let step = detector.poll(busy(since: 300), blocked, at: at(300), undividedSince: at(300))
        #expect(step.dropsSuspicion && step.unprovenTime == unproven.map { .milliseconds($0) })
    }

    /// The watchdog had no CPU while the loop computed in short callouts; then one of them queued for a CPU.
    @Test(arguments: [(busyBefore: 400, verdict: StallVerdict?.none), (0, .stalled)])
    mutating func `CPU time of the callouts before is not the stall's`(
        busyBefore: Int, verdict: StallVerdict?
    ) {
        func computed(_ cpu: Int, _ delay: Int) -> ThreadEvidence {
            ThreadEvidence(cpuTime: .milliseconds(cpu), runDelay: .milliseconds(delay))
        }
        _ = detector.poll(waiting(since: -500), computed(0, 0), at: at(-500))
        let step = detector.poll(
            busy(since: 0), computed(400, 300), at: at(300),
            busyBefore: .milliseconds(busyBefore))
        #expect(step.incident?.verdict == verdict)
    }

    /// A poll reads the beacon before 0; then the process exhausts its quota, and the poll reads the thread at 290. A
    /// callout with 6 ms of CPU, from 0 to 266, is in between.
    @Test mutating func `what a poll that lost its CPU read late is no earlier evidence`() {
        func counters(_ cpu: Int, _ delay: Int, _ throttles: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .milliseconds(delay),
                throttleCount: throttles)
        }
        _ = detector.poll(waiting(since: -500), counters(0, 0, 0), at: at(-400))
        _ = detector.poll(waiting(since: -500), counters(6, 260, 1), at: at(290))
        let incident = detector.judgeAfterwards(
            began: at(0), length: .milliseconds(266), threshold: .milliseconds(250),
            history: detector.history, busyElsewhere: .zero, counters(6, 260, 1), at: at(300),
            suspendedIntervals: SuspendedIntervals())
        #expect(incident == nil)
        // The same, and the callout is still running at the next poll.
        detector = StallDetector(policy: detector.policy)
        _ = detector.poll(waiting(since: -500), counters(0, 0, 0), at: at(-400))
        _ = detector.poll(waiting(since: -500), counters(6, 240, 1), at: at(246))
        let step = detector.poll(busy(since: 0), counters(12, 250, 1), at: at(262))
        #expect(step.incident?.verdict != .stalled)
    }

    /// A poll reads the beacon before 0 and the thread at 100, of which the callout that begins at 0 has waited 90 for a CPU.
    @Test mutating func `a wait for the CPU that earlier evidence contains is not the stall's own`()
    {
        func computing(_ cpu: Int, queued: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .milliseconds(queued),
                state: UInt8(ascii: "R"))
        }
        _ = detector.poll(waiting(since: -500), computing(0, queued: 0), at: at(-400))
        _ = detector.poll(waiting(since: -500), computing(10, queued: 90), at: at(100))
        let early = detector.poll(busy(since: 0), computing(170, queued: 90), at: at(260))
        #expect(early.incident == nil)
        let step = detector.poll(busy(since: 0), computing(260, queued: 90), at: at(350))
        #expect(step.incident?.verdict == .stalled, "and what it computes counts")
    }

    /// A callout before 0 waits 8 ms for a CPU. A poll at 60 sees the callout that begins at 0, whose thread blocks.
    @Test(arguments: [(delayedWhileItLasts: 0, verdict: StallVerdict.stalled), (40, .starved)])
    mutating func `a wait for the CPU before a stall is not taken for a part of it`(
        delayedWhileItLasts: Int, verdict: StallVerdict
    ) {
        func blocked(_ cpu: Int, _ delay: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .milliseconds(delay),
                state: UInt8(ascii: "S"))
        }
        _ = detector.poll(busy(since: -60), blocked(0, 0), at: at(-50))
        _ = detector.poll(
            busy(since: 0), blocked(10, 8), at: at(60), busyBefore: .milliseconds(40))
        _ = detector.poll(busy(since: 0), blocked(10, 8 + delayedWhileItLasts), at: at(125))
        let end = detector.poll(
            waiting(since: 252), blocked(10, 8 + delayedWhileItLasts), at: at(253), end: at(252))
        #expect(end.incident?.verdict == verdict)
    }

    /// The poll that sees the end comes late: the thread has waited for a CPU with other work since.
    @Test mutating func `a wait for the CPU after a stall is not taken for a part of it`() {
        func blocked(_ delay: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .zero, runDelay: .milliseconds(delay), state: UInt8(ascii: "S"))
        }
        _ = detector.poll(waiting(since: -1), blocked(0), at: at(-1))
        for now in [125, 250, 290] {
            _ = detector.poll(busy(since: 0), blocked(0), at: at(now))
        }
        let end = detector.poll(busy(since: 490), blocked(200), at: at(500), end: at(296))
        #expect(end.incident?.verdict == .stalled)
        #expect(end.incident?.duration == .milliseconds(296))
    }

    /// A callout is seen at 125 as it waits for a CPU, and ends at 260 with 5 ms of CPU time. The watchdog has no CPU
    /// until 700, while the loop computes in short callouts.
    @Test(arguments: [(busyBefore: 575, verdict: StallVerdict?.none), (135, .stalled)])
    mutating func `CPU time of the callouts behind it is not the stall's`(
        busyBefore: Int, verdict: StallVerdict?
    ) {
        func queued(_ cpu: Int, _ delay: Int, waits: Bool) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .milliseconds(delay),
                state: UInt8(ascii: "R"), waitsForCPU: waits)
        }
        _ = detector.poll(waiting(since: -1), queued(0, 0, waits: false), at: at(-1))
        _ = detector.poll(busy(since: 0), queued(1, 0, waits: true), at: at(125))
        let end = detector.poll(
            waiting(since: 700), queued(400, 255, waits: false), at: at(700), end: at(260),
            busyBefore: .milliseconds(busyBefore))
        #expect(end.incident.flatMap { $0.verdict == .stalled ? $0.verdict : nil } == verdict)
    }

    /// The loop reads the clock at 2, loses its CPU, and publishes that instant much later.
    @Test mutating func `what was reported does not become shorter`() {
        let waits = ThreadEvidence(
            cpuTime: .zero, runDelay: .zero, state: UInt8(ascii: "R"), waitsForCPU: true)
        _ = detector.poll(waiting(since: -1), waits, at: at(-1))
        _ = detector.poll(busy(since: 0), waits, at: at(125))
        let open = detector.poll(busy(since: 0), waits, at: at(1_100))
        #expect(open.incident?.verdict == .starved)
        let end = detector.poll(waiting(since: 2), waits, at: at(1_200), end: at(2))
        #expect(end.incident?.duration == .milliseconds(1_100) && end.incident?.hasEnded == true)
    }

    /// At every poll it is runnable but not scheduled; before, it had been busy for longer than it will be now.
    @Test mutating func `time after the first poll is the stall's own`() {
        func sharing(_ milliseconds: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(40 + milliseconds / 8),
                runDelay: .milliseconds(600 + milliseconds * 7 / 8), state: UInt8(ascii: "R"),
                waitsForCPU: true)
        }
        _ = detector.poll(
            waiting(since: -1_000), ThreadEvidence(cpuTime: .zero, runDelay: .zero),
            at: at(-1_000))
        var reported: [StallVerdict] = []
        for now in stride(from: 125, through: 2_400, by: 25) {
            let step = detector.poll(
                busy(since: 0), sharing(now), at: at(now),
                busyBefore: now == 125 ? .milliseconds(700) : .zero)
            if let incident = step.incident { reported.append(incident.verdict) }
        }
        #expect(reported.first == .starved && reported.last == .stalled, "\(reported)")
    }

    @Test(arguments: [(isProven: true, reported: 250), (false, 500)])
    mutating func `a loop that may be waiting unseen is not reported before twice the threshold`(
        isProven: Bool, reported: Int
    ) {
        var first: Int?
        for now in stride(from: 125, through: 1_000, by: 25) {
            let step = detector.poll(
                busy(since: 0), blocked, at: at(now), isProven: isProven)
            if step.incident != nil, first == nil { first = now }
        }
        #expect(first == reported)
    }

    /// The thread answered when its one long call returned, and the loop resumed before the next poll.
    @Test mutating func `a stack that came late is reported at the next poll`() {
        _ = detector.poll(busy(since: 0), blocked, at: at(250))
        #expect(detector.poll(busy(since: 0), blocked, at: at(260)).incident == nil)
        detector.refresh()
        #expect(detector.poll(busy(since: 0), blocked, at: at(270)).incident != nil)
        #expect(detector.poll(busy(since: 0), blocked, at: at(280)).incident == nil)
    }

    @Test func `a late answer is of the stall when the loop had not left it by then`() {
        let pointer = stall_beacon_create()!
        defer { stall_beacon_release(pointer) }
        let beacon = LoopBeacon(pointer)
        stall_beacon_publish_awake(pointer, at(0).nanoseconds)
        let word = beacon.word
        #expect(!beacon.hasLeft(word, by: at(500)))
        beacon.setAlarm(on: word)
        stall_beacon_publish_iteration(pointer, at(100).nanoseconds)
        #expect(!beacon.hasLeft(word, by: at(99)) && beacon.hasLeft(word, by: at(101)))
        beacon.setAlarm(on: beacon.word)
        #expect(beacon.hasLeft(word, by: at(99)), "when it left is not known any more")

        var sample = RawSample(
            offset: .milliseconds(25), taken: at(25), isLate: true, thread: ThreadID(rawValue: 1),
            phase: .unknown, mode: 0, failure: "did not answer", cost: .milliseconds(70))
        let stack = CapturedStack(addresses: [], isTruncated: false, method: .lateSignal)
        sample.complete(with: LateStack(requested: at(26), answered: at(99), stack: stack))
        #expect(!sample.isLate && sample.stack != nil && sample.failure == nil)
    }

    /// SIGSTOP for two seconds in a callback that needs 20 ms: the watchdog slept as well.
    @Test mutating func `a process that was suspended gets its own verdict`() {
        _ = detector.poll(waiting(since: -1), running(0), at: at(-1))
        _ = detector.poll(busy(since: 0), running(10), at: at(10))
        _ = detector.poll(
            busy(since: 0), running(12), at: at(2_000),
            suspendedIntervals: absent(from: 20, to: 1_990))
        let step = detector.poll(
            waiting(since: 2_010), running(20), at: at(2_011),
            suspendedIntervals: absent(from: 20, to: 1_990), end: at(2_010))
        #expect(step.incident?.verdict == .stopped)
        #expect(step.incident?.duration == .milliseconds(2_010))
    }

    /// The watchdog came late because it waited for a CPU itself: the process was there.
    @Test(arguments: [(late: 93, verdict: StallVerdict.stalled), (94, .stopped)])
    mutating func `a watchdog that alone came late does not doubt the stall, a paused machine does`(
        late: Int, verdict: StallVerdict
    ) {
        var suspendedIntervals = SuspendedIntervals()
        suspendedIntervals.note(
            from: at(250 - late), to: at(250), .milliseconds(late), isStop: false)
        _ = detector.poll(busy(since: 0), blocked, at: at(125))
        _ = detector.poll(
            busy(since: 0), blocked, at: at(250), suspendedIntervals: suspendedIntervals)
        let step = detector.poll(
            waiting(since: 252), blocked, at: at(253), suspendedIntervals: suspendedIntervals)
        #expect(step.incident?.verdict == verdict)
    }

    @Test mutating func `what was called stopped is watched as closely until it has stalled`() {
        var verdicts: [(at: Int, StallVerdict)] = []
        var polls: [Int] = []
        let stopped = ThreadEvidence(cpuTime: .seconds(1), state: UInt8(ascii: "T"))
        follow(until: 2500, evidence: { $0 <= 1000 ? stopped : blocked }) { now, step in
            polls.append(now)
            if let verdict = step.incident?.verdict { verdicts.append((now, verdict)) }
        }
        #expect(verdicts.first.map { (1000...1032).contains($0.at) && $0.1 == .stopped } == true)
        let stall = verdicts.first { $0.1 == .stalled }
        #expect(stall != nil && (1246...1290).contains(stall!.at), "\(verdicts)")
        let between = polls.filter { (1000...1240).contains($0) }
        #expect(zip(between.dropFirst(), between).allSatisfy { $0 - $1 <= 32 }, "\(between)")
    }

    @Test mutating func `a watchdog that is late for want of a CPU does not doubt the thread`() {
        _ = detector.poll(
            waiting(since: -1), ThreadEvidence(cpuTime: .zero, runDelay: .zero), at: at(-1))
        let asleep = ThreadEvidence(cpuTime: .zero, runDelay: .zero, state: UInt8(ascii: "S"))
        let step = detector.poll(busy(since: 0), asleep, at: at(400))
        #expect(step.incident?.verdict == .stalled)
    }

    @Test mutating func `a suspension in a callout is not added to its duration`() {
        _ = detector.poll(waiting(since: -1), running(0), at: at(-1))
        _ = detector.poll(busy(since: 0), blocked, at: at(125))
        let step = detector.poll(
            waiting(since: 320), blocked, at: at(320),
            suspendedIntervals: absent(from: 150, to: 270), end: at(320))
        #expect(step.incident?.verdict == .stopped, "200 ms of its own")
    }

    @Test
    mutating func `a stop before the callout began, or after it ended, is not held against it`() {
        var suspendedIntervals = absent(from: -500, to: -10)
        suspendedIntervals.note(from: at(260), to: at(900), .milliseconds(640))
        _ = detector.poll(
            busy(since: 0), blocked, at: at(125), suspendedIntervals: suspendedIntervals)
        let step = detector.poll(
            waiting(since: 255), blocked, at: at(905), suspendedIntervals: suspendedIntervals,
            end: at(255))
        #expect(step.incident?.verdict == .stalled)
        #expect(step.incident?.duration == .milliseconds(255))
    }

    @Test(arguments: [(lost: 3, reported: 250), (4, 251), (10, 257)])
    mutating func `a moment of waiting for the CPU is negligible, more is not the thread's`(
        lost: Int, stallAt: Int
    ) {
        func queued(_ milliseconds: Int) -> ThreadEvidence {
            let lost = milliseconds < 130 ? 0 : lost
            return ThreadEvidence(
                cpuTime: .milliseconds(milliseconds - lost), runDelay: .milliseconds(lost),
                state: UInt8(ascii: "R"))
        }
        _ = detector.poll(
            waiting(since: -1), ThreadEvidence(cpuTime: .zero, runDelay: .zero), at: at(-1))
        var reported: [Int] = []
        follow(until: 300, evidence: queued) { now, step in
            if step.incident != nil { reported.append(now) }
        }
        #expect(reported == [stallAt])
    }

    @Test mutating func `a debugger that was attached for a moment is the verdict`() {
        let traced = ThreadEvidence(cpuTime: .seconds(1), state: UInt8(ascii: "t"), isTraced: true)
        _ = detector.poll(busy(since: 0), traced, at: at(130))
        let step = detector.poll(busy(since: 0), blocked, at: at(1_000))
        #expect(step.incident?.verdict == .debugger)
    }

    @Test mutating func `a process that has used up its quota is throttled, unless it did stall`() {
        func throttled(_ cpu: Int, _ count: Int) -> ThreadEvidence {
            ThreadEvidence(
                cpuTime: .milliseconds(cpu), runDelay: .zero, state: UInt8(ascii: "R"),
                waitsForCPU: true, throttleCount: count)
        }
        _ = detector.poll(waiting(since: -1), throttled(0, 7), at: at(-1))
        _ = detector.poll(busy(since: 0), throttled(20, 8), at: at(500))
        #expect(
            detector.poll(busy(since: 0), throttled(40, 9), at: at(1_000)).incident?.verdict
                == .throttled)
        let end = detector.poll(
            waiting(since: 3_000), throttled(300, 30), at: at(3_000), end: at(3_000))
        #expect(end.incident?.verdict == .stalled)
    }

    @Test mutating func `five timeouts of 50 ms are a stall of 250 that is polled from 50 on`() {
        detector = StallDetector(policy: DetectionPolicy(timeout: .milliseconds(50), count: 5))
        var (samples, stalls): ([Int], [Int]) = ([], [])
        follow(until: 260, evidence: { _ in blocked }) { now, step in
            if step.takesSample { samples.append(now) }
            if step.incident != nil { stalls.append(now) }
        }
        #expect(samples.prefix(2) == [50, 100] && stalls == [250])
    }

    @Test mutating func `evidence that cannot be read leaves the wall clock's word`() {
        #expect(
            detector.poll(busy(since: 0), ThreadEvidence(), at: at(260)).incident?.verdict
                == .stalled)
    }

    @Test mutating func `stopping ends an open stall with the duration it has`() {
        _ = detector.poll(busy(since: 0), blocked, at: at(300))
        let incident = detector.stop(blocked, at: at(700))
        #expect(incident?.duration == .milliseconds(700) && incident?.hasEnded == true)
    }

    /// Whatever the loop does and whenever it is polled, no incident is shorter than the threshold, each one that
    /// begins ends exactly once, and durations never shrink.
    @Test(arguments: 0..<50 as Range<UInt64>)
    func `incidents are whole under random play`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var detector = StallDetector(policy: DetectionPolicy(threshold: .milliseconds(250)))
        var now = 1, word = 0, status = LoopStatus.waiting
        var open: StallIncident?
        for _ in 0..<2_000 {
            now += Int.random(in: 1...200, using: &random)
            if Int.random(in: 0..<3, using: &random) == 0 {
                word = now - Int.random(in: 0..<2, using: &random)
                status = [.busy, .waiting, .idle].randomElement(using: &random)!
            }
            let reading = LoopReading(status: status, since: at(word))
            guard let incident = detector.poll(reading, blocked, at: at(now)).incident else {
                continue
            }
            #expect(incident.duration >= .milliseconds(250))
            if let open {
                #expect(incident.began == open.began && incident.duration >= open.duration)
            }
            open = incident.hasEnded ? nil : incident
        }
    }
}
