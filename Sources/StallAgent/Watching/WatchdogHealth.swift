// Supervises the watchdog: the recorder checks periodically whether it came back when it was due.

internal import Logging
internal import StallDetection
internal import StallModel

/// The recorder's view of the watchdog's health.
struct WatchdogHealth {
    /// A watchdog that is overdue by more than this is blind. A capture of all threads takes a fifth of a second.
    static let limit = Duration.seconds(5)
    /// The interval of checks while it is busy, and while it waits without a deadline.
    static let interval = (busy: Duration.seconds(10), parked: Duration.seconds(60))

    /// When it was first found overdue. That may have been right after a stop of the whole process.
    private var suspectedAt: MonotonicInstant?
    /// An overdue watchdog is reported once.
    private var wasReported = false

    enum Finding: Equatable {
        case away(Duration)
        case isBack
    }

    /// Evaluates how long it has been overdue.
    ///
    /// - Returns: A change of its health, if any.
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
        // After a stop of the whole process, the watchdog gets a second to come back as well.
        guard !wasReported, now - since >= .seconds(1) else { return nil }
        wasReported = true
        return .away(delay)
    }

    /// When to check again.
    func nextPoll(delay: Duration, isWaiting: Bool, at now: MonotonicInstant) -> MonotonicInstant {
        if suspectedAt != nil { return now + .seconds(1) }
        return now + (isWaiting ? Self.interval.parked : Self.interval.busy)
    }
}
