// Totals over many stalls: what ranking, comparing and trends read instead of reports.

/// What the stalls of one roll-up have in common.
package enum RollUpDimension: Hashable, Sendable, CaseIterable {
    /// The accounting function and its callers.
    case signature
    /// The accounting function in its module.
    case family
    /// The accounting function by its name alone.
    case function
    case cause, loop, version, host, app
}

/// The stalls of one group, added up.
package struct RollUp: Hashable, Sendable {
    /// What makes the group where no function does: the app, the version, the host, the loop, or the cause's word.
    package var name: String
    /// The group; where others share the name or the family, the one of them that lost the most time.
    package var group: ReportGroup
    package var count: Int
    package var total: Duration
    /// Of the loops whose watched time is recorded alone: what rates are given of.
    package var watched = StallTotals()
    package var cpuTime: Duration
    package var min: Duration
    package var max: Duration
    package var p50: Duration
    package var p95: Duration
    package var p99: Duration
    /// The sum of the squares of the durations, in seconds: how uneven they are. Within 3 % where roll-ups were read.
    package var squares: Double
    /// When the first and the last of them began.
    package var first: UnixTime
    package var last: UnixTime
    /// The longest of them that the store still has, where it was asked for.
    package var example: UniqueID?
    /// In alphabetical order.
    package var apps: [String]
    package var versions: [String]
    package var loops: [String]
    /// The time lost by cause; stalls without one are absent.
    package var causes: [CauseClass: Duration]
    /// The stalls by day (days since 1970, UTC); empty unless it was asked for.
    package var days: [Int: Day]

    /// The stalls of one day.
    package struct Day: Hashable, Sendable {
        package var count: Int
        package var total: Duration
        package var longest: Duration

        package init(count: Int = 0, total: Duration = .zero, longest: Duration = .zero) {
            self.count = count
            self.total = total
            self.longest = longest
        }
    }

    package init(
        name: String, group: ReportGroup, count: Int, total: Duration, watched: StallTotals,
        cpuTime: Duration, min: Duration, max: Duration, p50: Duration, p95: Duration,
        p99: Duration,
        squares: Double, first: UnixTime, last: UnixTime, example: UniqueID?, apps: [String],
        versions: [String],
        loops: [String], causes: [CauseClass: Duration], days: [Int: Day]
    ) {
        self.name = name
        self.group = group
        self.count = count
        self.total = total
        self.watched = watched
        self.cpuTime = cpuTime
        self.min = min
        self.max = max
        self.p50 = p50
        self.p95 = p95
        self.p99 = p99
        self.squares = squares
        self.first = first
        self.last = last
        self.example = example
        self.apps = apps
        self.versions = versions
        self.loops = loops
        self.causes = causes
        self.days = days
    }

    /// The cause that took the most of the time, when there is one.
    package var cause: CauseClass? {
        causes.max { ($0.value, $1.key.rawValue) < ($1.value, $0.key.rawValue) }?.key
    }
}

/// The groups of an answer that are wanted, when not all of them are: the first ones in an order. Of equal ones those
/// come first that lost more time.
package struct LargestGroups: Hashable, Sendable {
    package enum Order: Sendable {
        case total, count, max, p95
        /// The time lost in loops whose watched time is recorded.
        case watched
    }

    package var count: Int
    package var order: Order

    package init(count: Int, by order: Order) {
        self.count = count
        self.order = order
    }
}

/// The answer to a question for roll-ups.
package struct RollUpAnswer: Hashable, Sendable {
    /// Only stalls whose verdict is `stalled`; in no order that means anything.
    package var groups: [RollUp]
    /// How many groups there are, listed or not, and what they add up to.
    package var groupCount = 0
    package var total = Duration.zero
    /// The part of it that was lost in loops whose watched time is recorded; only count and total are told.
    package var watched = StallTotals()
    /// How many reports there are of each verdict, `stalled` among them.
    package var counts: [StallVerdict: Int]
    /// How long the stalls of the listed groups lasted.
    package var durations = DurationHistogram()
    /// The apps, versions and loops of all of them, ranked or not.
    package var apps: [String]
    /// Each app with each of its versions, of the ranked stalls alone, and when the first and the last of those began.
    package var builds: [String] = []
    package var firstRanked: UnixTime?
    package var lastRanked: UnixTime?
    package var versions: [String]
    package var loops: [String]
    /// When the first and the last of them began.
    package var first: UnixTime?
    package var last: UnixTime?

    package init(
        groups: [RollUp] = [], counts: [StallVerdict: Int] = [:], apps: [String] = [],
        versions: [String] = [], loops: [String] = [], first: UnixTime? = nil,
        last: UnixTime? = nil
    ) {
        self.groups = groups
        self.counts = counts
        self.apps = apps
        self.versions = versions
        self.loops = loops
        self.first = first
        self.last = last
    }
}
