// Totals over many stalls: what rankings, comparisons and trends are made of, wherever they were added up.

/// The stalls of one group, added up.
package struct StallAggregate: Hashable, Sendable {
    package var key: GroupKey
    /// The group; where several share its hash, the one of them that lost the most time.
    package var group: ReportGroup
    /// The squares are within 3 % where roll-ups were read.
    package var totals: StallTotals
    /// Of the loops whose watched time is recorded alone: what rates are given of.
    package var watched: StallTotals
    /// Within 1.6 % where roll-ups were read.
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
    /// The longest of them that the store still has, where it was asked for.
    package var example: UniqueID?
    /// The stalls by day (days since 1970, UTC), without squares; empty unless a store was asked for them.
    package var days: [Int: StallTotals]
    /// The stalls in each part of the time that was asked about, the earliest first.
    package var trend: [StallTotals]
    /// The milliseconds that loops whose watched time is recorded lost per hour of it; nil where none is recorded.
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
    package var max: Duration { totals.longest }
    /// The functions that make the group, the accounting one first; empty for groups that other facts make.
    package var frames: [String] { group.frames }
    /// What people read: `lock in save() <- Editor.close()`; groups that other facts make have no words before them.
    package var title: String { key == .signature ? group.title(under: cause) : group.title }
    /// The cause that took the most of the time, when there is one.
    package var cause: CauseClass? { causesByTime.first?.cause }

    /// The time lost by cause, the most first.
    package var causesByTime: [(cause: CauseClass, total: Duration)] {
        causes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
            .map { ($0.key, $0.value) }
    }
}

/// A question for aggregates.
package struct AggregateQuestion: Hashable, Sendable {
    package var filter: ReportFilter
    /// What makes one group: any but `inclusive`.
    package var key: GroupKey
    /// Also add up each group's days; reads more rows.
    package var withDays: Bool
    /// Also look each listed group's longest report up, somewhere in the file.
    package var withExamples: Bool
    /// Which groups are listed; without it all. The others are only counted.
    package var largest: LargestGroups?

    package init(
        _ filter: ReportFilter = ReportFilter(), by key: GroupKey = .signature,
        withDays: Bool = false, withExamples: Bool = true, largest: LargestGroups? = nil
    ) {
        self.filter = filter
        self.key = key
        self.withDays = withDays
        self.withExamples = withExamples
        self.largest = largest
    }
}

/// The answer to a question for aggregates.
package struct AggregateAnswer: Hashable, Sendable {
    /// Only stalls whose verdict is `stalled`; in no order that means anything.
    package var groups: [StallAggregate] = []
    /// How many groups there are, listed or not, and what they add up to.
    package var groupCount = 0
    package var total = Duration.zero
    /// The part of it that was lost in loops whose watched time is recorded; only count and total are told.
    package var watched = StallTotals()
    /// How many reports there are of each verdict, `stalled` among them.
    package var counts: [StallVerdict: Int] = [:]
    /// How long the stalls of the listed groups lasted.
    package var durations = DurationHistogram()
    /// The apps, versions and loops of all of them, ranked or not.
    package var apps: [String] = []
    package var versions: [String] = []
    package var loops: [String] = []
    /// When the first and the last of them began.
    package var first: UnixTime?
    package var last: UnixTime?
    /// Each app with each of its versions, of the ranked stalls alone, and when the first and the last of those began.
    package var builds: [String] = []
    package var firstRanked: UnixTime?
    package var lastRanked: UnixTime?

    package init() {}
}
