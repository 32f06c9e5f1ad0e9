// Supervises the watchdog: it publishes when it will be back, and another thread checks whether it was.

internal import StallModel
internal import Synchronization

/// When the watchdog is due to be back.
final class WatchdogPulse: Sendable {
    private static let never = UInt64.max
    /// Nanoseconds; `never` while it sleeps without a deadline.
    private let due = Atomic<UInt64>(never)

    /// Busy since this instant, or due at it.
    func expect(at instant: MonotonicInstant?) {
        due.store(instant?.nanoseconds ?? Self.never, ordering: .relaxed)
    }

    var isWaiting: Bool { due.load(ordering: .relaxed) == Self.never }

    /// How long it has been busy or is overdue.
    func delay(at now: MonotonicInstant) -> Duration {
        let due = due.load(ordering: .relaxed)
        return due < now.nanoseconds ? now - MonotonicInstant(nanoseconds: due) : .zero
    }
}
