// Totals over many stalls: the input of rankings, comparisons and trends, from roll-ups or from reports.

package import StallModel

/// The totals of one group of stalls.
package struct StallAggregate: Hashable, Sendable {
    package var key: GroupKey
    /// The group; if several have its hash, the one of them that lost the most time.
    package var group: ReportGroup
    /// The sum of squares is within 3 % if roll-ups were read.
    package var totals: StallTotals
    /// Only of loops whose watched time is recorded: the basis of rates.
    package var watched: StallTotals
    /// Within 1.6 % if roll-ups were read.
    package var p50: Duration
    package var p95: Duration
    package var p99: Duration
    /// The time lost by cause; stalls without one are absent.
    package var causes: [CauseClass: Duration]
    /// In alphabetical order.
    package var apps: [String]
    package var versions: [String]
    package var loops: [String]
    /// When the first and the last of them began.
    package var first: UnixTime
    package var last: UnixTime
    /// The longest of them that the store still has, if requested.
    package var example: UniqueID?
    /// The stalls by day (days since 1970, UTC), without squares; empty unless requested.
    package var days: [Int: StallTotals]
    /// The stalls in each bucket of the requested period, earliest first.
    package var trend: [StallTotals]
    /// The stalls by process run, in unspecified order; empty unless requested.
    package var runs: [RunTotals] = []
    /// Milliseconds lost per watched hour, over the loops whose watched time is recorded; nil without any.
    package var ratePerHour: Double?

    package init(
        by key: GroupKey = .signature, _ group: ReportGroup, totals: StallTotals,
        watched: StallTotals = StallTotals(), p50: Duration = .zero, p95: Duration = .zero,
        p99: Duration = .zero, causes: [CauseClass: Duration] = [:], apps: [String] = [],
        versions: [String] = [], loops: [String] = [], first: UnixTime, last: UnixTime,
        example: UniqueID? = nil, days: [Int: StallTotals] = [:], trend: [StallTotals] = []
    ) {
        self.key = key
        self.group = group
        self.totals = totals
        self.watched = watched
        self.p50 = p50
        self.p95 = p95
        self.p99 = p99
        self.causes = causes
        self.apps = apps
        self.versions = versions
        self.loops = loops
        self.first = first
        self.last = last
        self.example = example
        self.days = days
        self.trend = trend
    }

    package var count: Int { totals.count }
    package var total: Duration { totals.total }
    /// The part of it that was the threads' own, by which groups are ranked.
    package var own: Duration { totals.own }
    package var max: Duration { totals.longest }
    /// The functions that define the group, the accounting one first; empty for groups by another fact.
    package var frames: [String] { group.frames }
    /// For display: `lock in save() <- Editor.close()`; groups by another fact have no prefix.
    package var title: String { key == .signature ? group.title(under: cause) : group.title }
    /// The cause with the most time, if any.
    package var cause: CauseClass? { causesByTime.first?.cause }

    /// The time lost by cause, largest first.
    package var causesByTime: [(cause: CauseClass, total: Duration)] {
        causes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
            .map { ($0.key, $0.value) }
    }
}

/// A query for aggregates.
package struct AggregateQuestion: Hashable, Sendable {
    package var filter: ReportFilter
    /// The property that defines a group: any key that does not need reports.
    package var key: GroupKey
    /// Also add up each group by day; reads more rows.
    package var withDays: Bool
    /// Also find each listed group's longest report, which costs a random read each.
    package var withExamples: Bool
    /// Otherwise quantiles and sums of squares may be zero: durations are most of what a store reads.
    package var withDurations: Bool
    /// The groups that are listed; nil for all. The others are only counted.
    package var largest: LargestGroups?

    package init(
        _ filter: ReportFilter = ReportFilter(), by key: GroupKey = .signature,
        withDays: Bool = false, withExamples: Bool = true, withDurations: Bool = true,
        largest: LargestGroups? = nil
    ) {
        self.filter = filter
        self.key = key
        self.withDays = withDays
        self.withExamples = withExamples
        self.withDurations = withDurations
        self.largest = largest
    }
}

/// The answer to a query for aggregates.
package struct AggregateAnswer: Hashable, Sendable {
    /// Only stalls whose verdict is `stalled`, in unspecified order.
    package var groups: [StallAggregate] = []
    /// The number of groups and their total, listed or not.
    package var groupCount = 0
    package var total = Duration.zero
    /// The part of it that was not the threads' own.
    package var delayed = Duration.zero
    /// The part of it that was lost in loops whose watched time is recorded; only `count`, `total` and `delayed` are set.
    package var watched = StallTotals()
    /// The number of reports by verdict, `stalled` included.
    package var counts: [StallVerdict: Int] = [:]
    /// The durations of the listed groups' stalls.
    package var durations = DurationHistogram()
    /// The apps, versions and loops of all reports, ranked or not.
    package var apps: [String] = []
    package var versions: [String] = []
    package var loops: [String] = []
    /// When the first and the last of all reports began.
    package var first: UnixTime?
    package var last: UnixTime?
    /// Each app with each of its versions, of the ranked stalls only, and when the first and the last of those began.
    package var builds: [String] = []
    package var firstRanked: UnixTime?
    package var lastRanked: UnixTime?

    package init() {}
}
