import StallModel
import Testing

@testable import StallAgent

/// Goal: limits hide repetition and not news, and whatever has no report is counted once, with its duration.
/// Method: the test owns the clock and sends the limiter the news of stalls.
@Suite struct ReportLimiterTests {
    var limiter = ReportLimiter(
        limits: RateLimits(perPlace: 2, perHour: 100), debuggerPolicy: .ignore)
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    /// The total count.
    var counted = 0
    var countedTime = Duration.zero
    private var lastID: UInt64 = 0

    /// A stall that has ended; returns whether it has a report.
    mutating func stall(
        at place: Int64 = 1, of duration: Duration = .milliseconds(300),
        verdict: StallVerdict = .stalled
    ) -> Bool {
        lastID += 1
        return tell(lastID, duration, .ended, verdict, at: place)
    }

    static func id(_ number: UInt64) -> UniqueID {
        UniqueID(
            bytes: (0..<16).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> (8 * $0)) : 7 })!
    }

    mutating func tell(
        _ number: UInt64, _ duration: Duration, _ state: StallState,
        _ verdict: StallVerdict = .stalled, at place: Int64 = 1
    ) -> Bool {
        let run = ProcessRun(
            id: Self.id(0), app: "photos", version: "1", buildID: nil, host: "web-1",
            pid: 7, bootID: "boot", startTicks: 1, started: UnixTime(microseconds: 0))
        let report = StallReport(
            id: Self.id(number), run: run, loop: "main", mode: "default",
            phase: .timer, start: run.started, duration: duration, threshold: .milliseconds(250),
            state: state, verdict: verdict)
        let answer = limiter.answer(report, place: place, at: now)
        counted += answer.count?.stalls ?? 0
        countedTime += answer.count?.time ?? .zero
        return answer.isReported
    }

    @Test mutating func `beyond its share a place is reported at multiples that double`() {
        let reported = (1...40).filter { _ in stall() }
        #expect(reported == [1, 2, 4, 8, 16, 32])
        #expect(counted == 34 && countedTime == .milliseconds(300 * 34))
        #expect(stall(at: 2), "another place has a share of its own")
    }

    @Test mutating func `a new hour is a new share`() {
        for _ in 1...3 { _ = stall() }
        now = now + .seconds(3599)
        _ = stall()
        #expect(!stall())
        now = now + .seconds(1)
        #expect(stall())
    }

    @Test mutating func `a stall more than twice as long as any from its place is news`() {
        for _ in 1...2 { _ = stall() }
        #expect(!stall(of: .milliseconds(600)))
        #expect(stall(of: .milliseconds(601)))
        #expect(!stall(of: .milliseconds(1_202)))
    }

    @Test mutating func `a process has its share, whatever the places`() {
        limiter.limits = RateLimits(perPlace: 30, perHour: 5)
        #expect((0..<20).filter { stall(at: Int64($0)) }.count == 5)
        #expect(counted == 15)
    }

    @Test
    mutating func `what was decided of an open stall holds until it ends, and is counted once`() {
        for _ in 1...2 { _ = stall() }
        #expect(!tell(900, .milliseconds(300), .open))
        #expect(!tell(900, .milliseconds(500), .open))
        #expect(!tell(900, .milliseconds(550), .ended))
        #expect(counted == 1 && countedTime == .milliseconds(550))
    }

    @Test(arguments: [RateLimits(perPlace: 2, perHour: 9), RateLimits(perPlace: 9, perHour: 2)])
    mutating func `an open stall that is reported after all is removed from the counts`(
        limits: RateLimits
    ) {
        limiter.limits = limits
        for _ in 1...2 { _ = stall() }
        #expect(!tell(900, .milliseconds(400), .open))
        #expect(counted == 1)
        #expect(tell(900, .seconds(2), .open))
        #expect(tell(900, .seconds(3), .ended))
        #expect(counted == 0 && countedTime == .zero)
    }

    @Test mutating func `under a debugger that is to be ignored nothing is reported`() {
        #expect(!stall(of: .seconds(100), verdict: .debugger))
        #expect(counted == 1)
        limiter.debuggerPolicy = .record
        #expect(stall(verdict: .debugger))
    }

    @Test mutating func `a meant stall that became one is reported, whatever the limits`() {
        for _ in 1...2 { #expect(stall(verdict: .expected)) }
        #expect(!tell(1000, .milliseconds(300), .open, .expected))
        #expect(counted == 1)
        #expect(tell(1000, .milliseconds(500), .open, .stalled))
        #expect(tell(1000, .milliseconds(550), .ended, .stalled))
        #expect(counted == 0 && countedTime == .zero)
    }

    @Test func `meant stalls have a share of their own`() {
        let run = ProcessRun(
            id: Self.id(0), app: "photos", version: "1", buildID: nil, host: "web-1",
            pid: 7, bootID: "boot", startTicks: 1, started: UnixTime(microseconds: 0))
        var report = StallReport(
            id: Self.id(1), run: run, loop: "main", mode: "", phase: .timer, start: run.started,
            duration: .seconds(1), threshold: .milliseconds(250), state: .ended)
        let place = report.place
        report.verdict = .expected
        #expect(report.place != place)
    }
}
