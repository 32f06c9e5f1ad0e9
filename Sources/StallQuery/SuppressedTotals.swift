package import StallModel

/// The stalls at one code location that have no report, as totals count them: of whichever loop.
package struct SuppressedTotals: Hashable, Sendable {
    /// As in `SuppressedStalls`.
    package var place: Int64
    package var reason: SuppressionReason
    package var count: Int
    package var total: Duration

    package init(place: Int64, reason: SuppressionReason, count: Int, total: Duration) {
        self.place = place
        self.reason = reason
        self.count = count
        self.total = total
    }

    package init(_ stalls: SuppressedStalls) {
        self.init(
            place: stalls.place, reason: stalls.reason, count: stalls.count, total: stalls.total)
    }
}
