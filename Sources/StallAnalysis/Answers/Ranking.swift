// The answer to "what to fix first".

package import StallModel

package struct Ranking: Sendable {
    /// All reports that the filter selects, ranked or not.
    package var overview: Overview
    /// The worst first.
    package var groups: [StallAggregate]
    /// How many there are beside those, of which only the time lost is known.
    package var restCount = 0
    /// What makes one group.
    package var key = GroupKey.signature
    /// How the groups' trends are divided; nil without stalls.
    package var buckets: TimeBuckets?
    /// How long the loops were watched, ranked or not.
    package var watched = WatchedTime()
    /// What was counted and has no report; empty for a part of the time and for causes, of which only reports tell.
    package var suppressed: [SuppressedStalls] = []

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

    /// Gives every group its rate, orders them by it if that is asked for, and notes what has no report.
    mutating func addExposure(
        from store: any QueryableStore, _ filter: ReportFilter, by order: RankingOrder
    ) throws {
        watched = try WatchedTime(store, filter, by: key)
        for index in groups.indices { groups[index].ratePerHour = watched.rate(of: groups[index]) }
        if order == .rate { groups = sorted(groups, by: .rate) }
        if filter.since == nil, filter.until == nil, filter.causes == nil {
            suppressed = try store.suppressedStalls(filter)
        }
    }

    /// As many parts as the column TREND has characters.
    static let sparklineParts = 8

    static func sparkline(from first: UnixTime, through last: UnixTime) -> TimeBuckets {
        TimeBuckets(from: first, through: last, count: sparklineParts)
    }

    /// Whether the stalls are spread over more than a few minutes, so that a trend says something.
    package var hasTrend: Bool {
        guard let bounds = buckets?.bounds else { return false }
        return bounds[bounds.count - 1].microseconds - bounds[0].microseconds >= 600_000_000
    }
}
