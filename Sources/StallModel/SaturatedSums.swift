// Sums of stored numbers. A store is untrusted input: where a sum would leave the range of its type, it ends there.

extension FixedWidthInteger {
    /// The sum, or the number that is nearest to it. Inlinable: callers in other modules have no generic of their own.
    @inlinable
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }

    /// Adds, and ends at the largest or smallest number.
    @inlinable
    package mutating func addSaturated(_ other: Self) { self = addingSaturated(other) }
}
