// The result of `top`.

import StallModel
package import StallQuery

package struct Ranking: Sendable {
    /// All selected reports, ranked or not.
    package var overview: Overview
    /// Sorted, largest first.
    package var groups: [StallAggregate]
    /// Further groups, of which only the total time lost is known.
    package var restCount = 0
    /// The key that reports are grouped by.
    package var key = GroupKey.signature
    /// The buckets of the groups' trends; nil without stalls.
    package var buckets: TimeBuckets?
    /// The watched time of the loops, ranked or not.
    package var watched = WatchedTime()
    /// Suppressed stalls, which have no reports. Empty with a time range or a cause filter, because they have neither.
    package var suppressed: [SuppressedTotals] = []

    /// The process runs, with or without stalls; asked for by comparisons only.
    package var runs = ComparedRuns.unknown(reason: "hosts were not asked for")
    /// The stalls by run of groups that have no runs of their own, in unspecified order.
    var restRuns: [RunTotals] = []
    /// Every stall once, by run, where groups share stalls; asked for by comparisons only.
    var allRuns: [RunTotals]?

    package init(
        overview: Overview, groups: [StallAggregate], restCount: Int = 0,
        key: GroupKey = .signature, buckets: TimeBuckets? = nil
    ) {
        self.overview = overview
        self.groups = groups
        self.restCount = restCount
        self.key = key
        self.buckets = buckets
    }

    /// The time lost in all ranked reports.
    package var totalLost: Duration { overview.totalLost }
    /// The part of it that was the threads' own.
    package var ownLost: Duration { overview.totalLost - overview.delayed }

    /// Sets each group's rate, sorts by rate if requested, and adds the suppressed stalls.
    mutating func addExposure(
        from store: any QueryableStore, _ filter: ReportFilter, by order: RankingOrder
    ) throws {
        // Rates and suppressed stalls are of stalls in what the agents watched.
        guard !filter.rankedVerdicts.isSubset(of: [.sampled, .blocking, .expected]) else { return }
        watched = try WatchedTime(store, filter, by: key)
        for index in groups.indices { groups[index].ratePerHour = watched.rate(of: groups[index]) }
        if order == .rate { groups = sorted(groups, by: .rate) }
        if filter.since == nil, filter.until == nil, filter.causes == nil, filter.states == nil,
            filter.rankedVerdicts.contains(.stalled)
        {
            suppressed = try store.suppressedTotals(filter)
        }
    }

    /// One bucket per character of the TREND column.
    static let sparklineParts = 8

    /// - Parameter days: Times with their numbers of stalls. A few stalls long before or after all others, as a machine
    ///   without a clock has them, are in the first or the last bucket, and do not stretch the others.
    static func sparkline(
        from first: UnixTime, through last: UnixTime,
        days: @autoclosure () -> some Sequence<(UnixTime, Int)>
    ) -> TimeBuckets {
        var (begin, end) = (first, last)
        // A span of less than a month is not due to clocks.
        if Double(last.microseconds) - Double(first.microseconds) > 31 * 86_400e6 {
            (begin, end) = OutlyingTimes.core(of: days(), from: first, through: last)
        }
        var bounds = TimeBuckets(from: begin, through: end, count: sparklineParts).bounds
        bounds[0] = first
        bounds[sparklineParts] = Swift.max(
            bounds[sparklineParts],
            UnixTime(microseconds: Swift.min(last.microseconds, .max - 1) + 1))
        return TimeBuckets(bounds: bounds)
    }

    /// Whether the stalls span more than a few minutes, so that a trend is meaningful.
    package var hasTrend: Bool {
        guard let bounds = buckets?.bounds else { return false }
        return bounds[bounds.count - 1].microseconds - bounds[0].microseconds >= 600_000_000
    }
}
