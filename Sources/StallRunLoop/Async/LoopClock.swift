// The clock that loops go by, for the APIs that take a clock.

public import StallModel
internal import CLinux

/// `CLOCK_MONOTONIC`, which timers and ``EventRunLoop/run(until:)-(MonotonicInstant)`` go by. It stands still while the
/// machine is suspended.
///
/// Made with a loop, it sleeps by a timer of that loop; without one as `ContinuousClock` does.
public struct LoopClock: Clock {
    /// An instant of `CLOCK_MONOTONIC`.
    public typealias Instant = MonotonicInstant

    private let loop: EventRunLoop?

    /// A clock that sleeps by the loop's timers.
    public init(loop: EventRunLoop? = nil) { self.loop = loop }

    /// The reading of the clock.
    public var now: MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until `deadline`, at most `tolerance` longer.
    ///
    /// - Throws: `CancellationError` when the task is cancelled; ``LoopError/stopped`` when the loop's thread ends.
    public func sleep(until deadline: MonotonicInstant, tolerance: Duration? = nil) async throws {
        guard let loop else {
            return try await ContinuousClock().sleep(
                until: .now + (deadline - now), tolerance: tolerance)
        }
        let wait = LoopWait<Void>()
        try await wait.value { [tolerance = tolerance ?? .zero] in
            // Only the loop holds the timer, and only the timer this, which so says that it was dropped.
            let end = AtEnd { wait.end(throwing: LoopError.stopped) }
            let timer = LoopTimer(at: deadline, tolerance: tolerance) { _ in
                withExtendedLifetime(end) { wait.end {} }
            }
            guard loop.add(timer, toMode: .common) else { return nil }
            return { [weak timer] in timer?.invalidate() }
        }
    }
}

extension MonotonicInstant: InstantProtocol {
    /// The instant `duration` later; saturates at both ends of the clock.
    public func advanced(by duration: Duration) -> MonotonicInstant { self + duration }

    /// The time from this instant to `other`; negative when that is the earlier one.
    public func duration(to other: MonotonicInstant) -> Duration { other - self }
}
