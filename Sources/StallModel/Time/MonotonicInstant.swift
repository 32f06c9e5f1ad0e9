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
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }

    /// The duration in milliseconds with its fraction: the unit of JSON and CSV output.
    package var milliseconds: Double { Double(nanoseconds) / 1_000_000 }
}
