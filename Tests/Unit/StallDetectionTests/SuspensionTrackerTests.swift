import StallModel
import Testing

@testable import StallDetection

/// Goal: suspensions of the process are distinguished from what only delays the watchdog.
/// Method: the test owns the clock, simulates the kernel's counters, and wakes the suspension probe.
@Suite struct SuspensionTrackerTests {
    var suspensionTracker = SuspensionTracker(at: Self.at(0))

    static func at(_ milliseconds: Double) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: 1_000_000_000) + .microseconds(milliseconds * 1000)
    }

    mutating func sleep(
        from: Double = 0, until due: Double?, wake: Double, ran: Double = 0, queued: Double? = 0
    ) {
        func counters(_ ran: Double, _ queued: Double?) -> OwnCounters {
            OwnCounters(
                cpuTime: .microseconds(ran * 1000),
                runDelay: queued.map { .microseconds($0 * 1000) })
        }
        suspensionTracker.goToSleep(at: Self.at(from), counters(7, queued.map { _ in 5 }))
        suspensionTracker.wake(
            expectedAt: due.map(Self.at), at: Self.at(wake),
            counters(7 + ran, queued.map { 5 + $0 }))
    }

    mutating func check(at now: Double, wasInterrupted: Bool) {
        suspensionTracker.check(
            from: Self.at(now), to: Self.at(now + 0.5), wasInterrupted: wasInterrupted)
    }

    func missed(from: Double = 0, to: Double = 10_000) -> Double {
        suspensionTracker.suspendedIntervals.time(from: Self.at(from), to: Self.at(to)).milliseconds
    }

    @Test
    mutating func
        `a sleep that ends on time is no suspension, nor is one that was ended by a wake-up`()
    {
        sleep(until: 500, wake: 500.1)
        sleep(until: nil, wake: 9_000)
        sleep(until: 9_900, wake: 9_100)
        #expect(missed() == 0)
    }

    /// SIGSTOP and SIGCONT long before the watchdog wanted to wake up, or while it queued for a CPU.
    @Test mutating func `a stop is known by the sentinel, since it was last known to sleep`() {
        check(at: 300, wasInterrupted: false)
        check(at: 400, wasInterrupted: true)
        check(at: 600, wasInterrupted: false)
        #expect(missed() == 100.5)
        #expect(missed(to: 300) == 0 && missed(from: 350, to: 380) == 30 && missed(from: 401) == 0)
    }

    /// A stop after the instant that a poll accounts for, and before the suspension probe was read, must not be lost.
    @Test
    mutating func `a suspension while the probe was read may belong to both polls`() {
        check(at: 100, wasInterrupted: true)
        #expect(missed(from: 100, to: 100.5) == 0.5)
    }

    @Test mutating func `a machine that was paused made it late without a reason`() {
        sleep(until: 100, wake: 400, ran: 1)
        #expect(missed() == 299 && missed(to: 100) == 0)
    }

    /// It was at work, at captures, when another loop was due: it goes to sleep and wakes up at once.
    @Test mutating func `what was due before it went to sleep was not missed in its sleep`() {
        sleep(from: 130, until: 100, wake: 130.1)
        #expect(missed() == 0)
    }

    @Test(arguments: [(late: 3.9, missed: 0.0), (4.1, 4.1)])
    mutating func `a tick of the kernel is not an absence`(late: Double, missed: Double) {
        sleep(until: 50, wake: 50 + late)
        #expect(self.missed() == missed)
    }

    @Test mutating func `a watchdog that queued for a CPU was late, and the process was there`() {
        sleep(until: 100, wake: 400, queued: 299)
        #expect(missed() == 0)
    }

    @Test
    mutating func `where the kernel does not count waits for the CPU, lateness is an absence`() {
        sleep(until: 100, wake: 400, queued: nil)
        #expect(missed() == 300)
    }

    @Test func `the sentinel sleeps until the end`() throws {
        let suspensionProbe = try #require(SuspensionProbe())
        var files = suspensionProbe.files()
        while files == nil { files = suspensionProbe.files() }
        // Its first turns are those of its start.
        while files?.wasInterrupted() != false {}
        let disturbances = (0..<100).filter { _ in files?.wasInterrupted() != false }
        #expect(disturbances == [])
        // Another reader has nothing to compare with at first: a stop before would be missed.
        var others = suspensionProbe.files()
        #expect(others?.wasInterrupted() == true)
        #expect(others?.wasInterrupted() == false)
        suspensionProbe.stop()
    }
}
