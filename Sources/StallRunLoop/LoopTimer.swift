// A handler that is called at an instant, once or again and again. Belongs to at most one loop.

public import StallModel
internal import CLinux
internal import Synchronization

/// Calls a handler on a loop's thread at an instant, and then at every interval if it repeats.
///
/// A repeating timer keeps its phase: when the loop is late, missed calls are skipped and the next one comes at the
/// first multiple of the interval that is still to come. While its handler runs, a timer is not called again.
///
/// **Thread safety:** any thread may use it; the handler runs on the loop's thread.
public final class LoopTimer: @unchecked Sendable {
    /// The time between calls; nil for a timer that is called once.
    public let interval: Duration?

    let handler: (LoopTimer) -> Void
    let intervalNanoseconds: UInt64
    let validity = Atomic<Bool>(true)
    /// Its loop. Changed with the loop's lock held.
    let owner = Mutex<EventRunLoop?>(nil)
    /// When it fires next; guarded by its loop's lock, or by `owner` while it has no loop.
    var deadline: UInt64
    /// Guarded like `deadline`.
    var toleranceNanoseconds: UInt64 = 0
    /// The modes it is in and its place in each one's heap; guarded by its loop's lock.
    var places: [(mode: ModeItems, slot: UInt32)] = []
    /// Its handler is running; guarded by its loop's lock.
    var isFiring = false

    /// Makes a timer that fires first after `delay`, then every `interval` unless that is nil.
    ///
    /// - Parameters:
    ///   - delay: The time until it fires first; zero or less means at once.
    ///   - interval: The time between calls; nil, zero or less makes a timer that is called once.
    ///   - tolerance: How much later than asked it may fire, so that the loop can serve several timers with one
    ///     wake-up. At most half the interval of a repeating timer is used.
    public convenience init(
        after delay: Duration, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: @escaping (LoopTimer) -> Void
    ) {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        self.init(
            at: now + max(delay, .zero), every: interval, tolerance: tolerance, handler: handler)
    }

    /// Makes a timer that fires first at `instant`; an instant in the past means at once.
    public init(
        at instant: MonotonicInstant, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: @escaping (LoopTimer) -> Void
    ) {
        let repeating = interval.flatMap { $0 > .zero ? $0 : nil }
        self.interval = repeating
        self.handler = handler
        intervalNanoseconds = repeating.map { UInt64(max(1, $0.nanoseconds)) } ?? 0
        deadline = max(instant.nanoseconds, stall_monotonic_ns())
        self.toleranceNanoseconds = clamped(tolerance)
    }

    /// False once it was invalidated, or, when it does not repeat, was called.
    public var isValid: Bool { validity.load(ordering: .acquiring) }

    /// Whether it is called more than once.
    public var repeats: Bool { intervalNanoseconds != 0 }

    /// When it fires next. Set it to fire earlier or later; a repeating timer goes on from there. Set while the
    /// handler runs, a later instant is honoured and an earlier one ignored. Setting it on another thread wakes the loop.
    public var nextFire: MonotonicInstant {
        get { MonotonicInstant(nanoseconds: withLock { deadline }) }
        set {
            let instant = max(newValue.nanoseconds, stall_monotonic_ns())
            withLock {
                deadline = instant
                for place in places where !isFiring {
                    place.mode.timers.move(place.slot, to: instant)
                }
            }
            guard let loop = owner.withLock({ $0 }), !loop.isCurrent else { return }
            loop.wake.nudge()
            loop.wakeUp()
        }
    }

    /// How much later than asked it may fire. Negative values count as zero, values above half the interval of a
    /// repeating timer as that half.
    public var tolerance: Duration {
        get { .nanoseconds(Int64(clamping: withLock { toleranceNanoseconds })) }
        set {
            withLock {
                toleranceNanoseconds = clamped(newValue)
                guard toleranceNanoseconds > 0 else { return }
                for place in places { place.mode.timers.hasTolerance = true }
            }
        }
    }

    /// Removes it from its loop for good.
    public func invalidate() {
        guard validity.exchange(false, ordering: .acquiringAndReleasing) else { return }
        owner.withLock { $0 }?.removeFromAllModes(self)
    }

    /// Runs `body` with whatever lock guards the timer now: its loop's, or its own while it has no loop.
    private func withLock<Result>(_ body: () -> Result) -> Result {
        while true {
            if let loop = owner.withLock({ $0 }) {
                loop.lock.lock()
                defer { loop.lock.unlock() }
                if owner.withLock({ $0 }) === loop { return body() }
            } else {
                let result: Result? = owner.withLock { $0 == nil ? body() : nil }
                if let result { return result }
            }
        }
    }

    private func clamped(_ tolerance: Duration) -> UInt64 {
        let wanted = UInt64(max(0, tolerance.nanoseconds))
        return repeats ? min(wanted, intervalNanoseconds / 2) : wanted
    }
}
