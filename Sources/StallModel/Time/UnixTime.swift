// Wall-clock times, for display and across machines. Never subtract two of these to get a duration.

/// A wall-clock time in UTC: microseconds since 1 January 1970.
public struct UnixTime: Hashable, Comparable, Sendable {
    /// Microseconds since the epoch; negative before 1970.
    public var microseconds: Int64

    /// Wraps microseconds since 1 January 1970, UTC.
    public init(microseconds: Int64) { self.microseconds = microseconds }

    public static func < (left: Self, right: Self) -> Bool {
        left.microseconds < right.microseconds
    }
}
