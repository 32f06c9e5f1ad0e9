import StallModel
import TestSupport
import Testing

/// Goal: a duration has the nanoseconds that its components say, whole and saturated. Method: the limits, and random ones.
@Suite struct DurationTests {
    @Test(arguments: [
        Duration.zero, .nanoseconds(1), .nanoseconds(-1), Duration(secondsComponent: 0, attosecondsComponent: 999_999_999),
        Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999), .nanoseconds(Int64.max),
        .nanoseconds(Int64.min), .nanoseconds(Int64.max) + .nanoseconds(1), .nanoseconds(Int64.min) - .nanoseconds(1),
        .seconds(Int64.max), .seconds(Int64.min), .seconds(9_223_372_036), .seconds(9_223_372_037), .seconds(-9_223_372_037),
        .milliseconds(1_500), .seconds(10_000_000_000), .seconds(20_000_000_000), .seconds(-20_000_000_000),
    ])
    func `nanoseconds are whole, and end at the limits`(duration: Duration) {
        #expect(duration.nanoseconds == Self.byComponents(duration))
    }

    @Test func `random durations have the nanoseconds of their components`() {
        var random = SeededGenerator(seed: 37)
        for _ in 0..<20_000 {
            let seconds = Int64(bitPattern: random.next()) >> Int64(random.next() % 64)
            let rest = Int64(bitPattern: random.next()) % 1_000_000_000_000_000_000
            let duration = Duration(secondsComponent: seconds, attosecondsComponent: rest)
            guard duration.nanoseconds != Self.byComponents(duration) else { continue }
            Issue.record("\(duration.components)")
        }
    }

    private static func byComponents(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }
}
