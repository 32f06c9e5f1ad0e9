// Supervises the watchdog: it publishes when it will be back, and another thread checks whether it was.

internal import StallModel
internal import Synchronization

/// When the watchdog is due to be back.
final class WatchdogPulse: Sendable {
    private static let never = UInt64.max
    /// Nanoseconds; `never` while it sleeps without a deadline.
    private let promise = Atomic<UInt64>(never)

    /// Busy since this instant, or due at it.
    func expect(at instant: MonotonicInstant?) {
        promise.store(instant?.nanoseconds ?? Self.never, ordering: .relaxed)
    }

    var isWaiting: Bool { promise.load(ordering: .relaxed) == Self.never }

    /// How long it has been busy or is overdue.
    func delay(at now: MonotonicInstant) -> Duration {
        let promised = promise.load(ordering: .relaxed)
        return promised < now.nanoseconds ? now - MonotonicInstant(nanoseconds: promised) : .zero
    }
}
