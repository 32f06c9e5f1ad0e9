// CLOCK_MONOTONIC of this boot. Wall clocks jump; durations are never computed from them. The model reads no clock:
// other modules do, and pass the value in.

/// An instant of `CLOCK_MONOTONIC`, in nanoseconds since an arbitrary point of this boot.
public struct MonotonicInstant: Hashable, Comparable, Sendable {
    /// Nanoseconds on the monotonic clock.
    public var nanoseconds: UInt64

    /// Wraps a value of `clock_gettime(CLOCK_MONOTONIC)`.
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant `duration` later; saturates at both ends of the clock.
    public static func + (instant: Self, duration: Duration) -> Self {
        let sum = Int64(clamping: instant.nanoseconds).addingReportingOverflow(duration.nanoseconds)
        let clamped =
            sum.overflow ? (duration.nanoseconds > 0 ? Int64.max : 0) : max(0, sum.partialValue)
        return Self(nanoseconds: UInt64(clamped))
    }

    /// The time from `right` to `left`; negative if `left` is earlier.
    public static func - (left: Self, right: Self) -> Duration {
        .nanoseconds(Int64(clamping: left.nanoseconds) - Int64(clamping: right.nanoseconds))
    }
}

extension Duration {
    /// The whole duration in nanoseconds, saturating at ±292 years.
    package var nanoseconds: Int64 {
        // One division of the machine's: `components` makes two of 128 bits by a function call each, which was a quarter of
        // making a timer.
        let all = attoseconds
        let isNegative = all < 0
        let magnitude = all.magnitude
        let high = UInt64(truncatingIfNeeded: magnitude >> 64)
        // Too many for the quotient to fit.
        guard high < 500_000_000 else { return isNegative ? .min : .max }
        let low = UInt64(truncatingIfNeeded: magnitude)
        let quotient = UInt64(1_000_000_000).dividingFullWidth((high, low)).quotient
        guard quotient <= UInt64(Int64.max) else { return isNegative ? .min : .max }
        return isNegative ? -Int64(quotient) : Int64(quotient)
    }

    /// The duration in milliseconds with its fraction: the unit of JSON and CSV output.
    package var milliseconds: Double { Double(nanoseconds) / 1_000_000 }
}
