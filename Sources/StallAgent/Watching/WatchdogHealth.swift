// Watches the watchdog: the recorder checks now and then whether it came back when it had said it would.

internal import Logging
internal import StallDetection
internal import StallModel

/// What the recorder knows of the watchdog's health.
struct WatchdogHealth {
    /// A watchdog that is away longer than this is blind. A capture of all threads takes a fifth of a second.
    static let limit = Duration.seconds(5)
    /// How often is looked while it has something to do, and while it only waits.
    static let interval = (busy: Duration.seconds(10), parked: Duration.seconds(60))

    /// It was away at the last look, which may have been the first one after a stop of the whole process.
    private var suspectedAt: MonotonicInstant?
    /// A watchdog that is away is reported once.
    private var wasReported = false

    enum Finding: Equatable {
        case away(Duration)
        case isBack
    }

    /// Looks at how long it has been away.
    ///
    /// - Returns: What is new, if anything.
    mutating func poll(delay: Duration, at now: MonotonicInstant) -> Finding? {
        guard delay >= Self.limit else {
            suspectedAt = nil
            defer { wasReported = false }
            return wasReported ? .isBack : nil
        }
        guard let since = suspectedAt else {
            suspectedAt = now
            return nil
        }
        // Where the whole process was stopped, the watchdog gets a second to come back as well.
        guard !wasReported, now - since >= .seconds(1) else { return nil }
        wasReported = true
        return .away(delay)
    }

    /// When to look again.
    func nextPoll(delay: Duration, isWaiting: Bool, at now: MonotonicInstant) -> MonotonicInstant {
        if suspectedAt != nil { return now + .seconds(1) }
        return now + (isWaiting ? Self.interval.parked : Self.interval.busy)
    }
}
