import StallModel
import Testing

@testable import StallDetection

/// Goal: a loop that never waits is distinguished from a busy one and from a stalled one.
/// Method: the test owns the clock and simulates the loop.
@Suite struct SaturationDetectorTests {
    var detector = SaturationDetector()
    let policy = DetectionPolicy(threshold: .milliseconds(250))
    let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    mutating func poll(
        _ milliseconds: Int, rests: UInt64, status: LoopStatus = .busy, isStalled: Bool = false,
        delay: Duration = .zero, suspendedIntervals: SuspendedIntervals = SuspendedIntervals()
    ) -> StallStep {
        let now = start + .milliseconds(milliseconds)
        return detector.poll(
            LoopReading(status: status, since: now), rests: rests,
            ThreadEvidence(cpuTime: .milliseconds(milliseconds), runDelay: delay), at: now,
            suspendedIntervals: suspendedIntervals, isStalled: isStalled, policy: policy)
    }

    @Test
    mutating func `a loop that does not rest for two seconds is saturated, with samples of them`() {
        var samples: [Int] = []
        var reported: [Int] = []
        for now in stride(from: 0, through: 2_500, by: 100) {
            let step = poll(now, rests: 7)
            if step.takesSample { samples.append(now) }
            if step.incident != nil { reported.append(now) }
        }
        #expect(reported == [2_000] && samples.first == 1_000 && samples.count >= 3)
        let end = poll(2_600, rests: 8, status: .waiting)
        #expect(end.incident?.verdict == .saturated && end.incident?.hasEnded == true)
        #expect(end.incident?.duration == .milliseconds(2_600))
    }

    @Test mutating func `a wait between two polls is a wait`() {
        for now in stride(from: 0, through: 10_000, by: 100) {
            #expect(poll(now, rests: UInt64(now / 1_500)).incident == nil)
        }
    }

    @Test mutating func `a stalled callout is no saturation`() {
        for now in stride(from: 0, through: 10_000, by: 100) {
            #expect(poll(now, rests: 1, isStalled: now.isMultiple(of: 1_000)).incident == nil)
        }
    }

    @Test mutating func `time in which the process was stopped saturates nothing`() {
        var suspendedIntervals = SuspendedIntervals()
        suspendedIntervals.note(
            from: start + .milliseconds(500), to: start + .milliseconds(2_000), .milliseconds(1_500)
        )
        for now in stride(from: 0, through: 3_400, by: 100) {
            #expect(poll(now, rests: 1, suspendedIntervals: suspendedIntervals).incident == nil)
        }
        #expect(
            poll(3_500, rests: 1, suspendedIntervals: suspendedIntervals).incident?.verdict
                == .saturated)
    }

    @Test mutating func `a loop that waits for the CPU is not to blame`() {
        for now in stride(from: 0, through: 10_000, by: 100) {
            #expect(poll(now, rests: 1, delay: .milliseconds(now * 2 / 3)).incident == nil)
        }
    }
}
