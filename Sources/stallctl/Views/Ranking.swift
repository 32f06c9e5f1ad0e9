// The answer to "what to fix first", before it is shown: asked of the store, ranked by the
// analysis.

internal import StallAnalysis
internal import StallModel
internal import StallStore

struct Ranking {
    /// All reports that the filter selects, ranked or not.
    var overview: Overview
    /// The worst first.
    var hotspots: [Hotspot]
    /// How many there are beside those, of which only the time lost is known.
    var restCount = 0
    /// What makes one group.
    var group = GroupKey.signature
    /// How the groups' trends are divided; nil without stalls.
    var buckets: TimeBuckets?
    /// How long the loops were watched, ranked or not.
    var watched = WatchedTime()
    /// What was counted and has no report; empty for a part of the time and for causes, of which only reports tell.
    var suppressed: [SuppressedStalls] = []

    /// The time lost in all ranked reports.
    var totalLost: Duration { overview.totalLost }
}

extension Ranking {
    init(
        reports: [ReportSummary], runs: [ProcessRun], hotspots: [Hotspot],
        group: GroupKey = .signature, buckets: TimeBuckets? = nil
    ) {
        let example = hotspots.first?.example
        self.init(
            overview: Overview(reports, runs: runs, example: example), hotspots: hotspots,
            group: group, buckets: buckets)
    }

    /// Ranks every report that the filter selects: exact, and as slow as they are many.
    init(
        store: ReportStore, filter: ReportFilter, rules: GroupingRules = .builtIn,
        by order: RankingOrder, group: GroupKey,
        buckets makeBuckets: (UnixTime, UnixTime) throws -> TimeBuckets = Self.sparkline
    ) throws {
        let selection = try store.summaries(filter)
        let stalls = selection.reports.filter { $0.verdict == .stalled }
        let starts = stalls.lazy.map(\.start)
        var buckets: TimeBuckets?
        if let first = starts.min(), let last = starts.max() {
            buckets = try makeBuckets(first, last)
        }
        let stacks = Set(stalls.lazy.flatMap { $0.stacks.lazy.map(\.stack) })
        let frames = try store.frames(ofStacks: stacks)
        self.init(
            reports: selection.reports, runs: selection.runs,
            hotspots: rank(
                stalls, runs: selection.runs, frames: frames, by: order, group: group,
                buckets: buckets, rules: rules),
            group: group, buckets: buckets)
        try addExposure(from: store, filter, by: order)
    }

    /// Gives every group its rate, orders them by it if that is asked for, and notes what has no report.
    mutating func addExposure(
        from store: ReportStore, _ filter: ReportFilter, by order: RankingOrder
    ) throws {
        watched = try WatchedTime(store, filter, by: group)
        for index in hotspots.indices {
            hotspots[index].ratePerHour = watched.rate(of: hotspots[index])
        }
        if order == .rate { hotspots = sorted(hotspots, by: .rate) }
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
    var hasTrend: Bool {
        guard let bounds = buckets?.bounds else { return false }
        return bounds[bounds.count - 1].microseconds - bounds[0].microseconds >= 600_000_000
    }

    /// The groups as data, the worst first.
    var rows: [HotspotRow] {
        let total = totalLost.milliseconds
        return hotspots.enumerated().map { HotspotRow($1, rank: $0 + 1, totalLostMs: total) }
    }
}

/// One group as data: the shape of `top --json`. Scripts depend on the names.
struct HotspotRow: Encodable {
    let schema = "stallctl.hotspot/1"
    var rank: Int
    var signature: String
    /// The group of the first function alone, whoever called it.
    var family: String
    var title: String
    var count: Int
    var totalMs: Double
    /// Of the time lost in all groups, 0 to 1.
    var share: Double
    var p50Ms: Double
    var p95Ms: Double
    var p99Ms: Double
    var maxMs: Double
    /// The functions that make the group, app frame first; empty for groups that other things make.
    var frames: [String]
    /// None of the app's functions was on the stacks; `frames` are the system's.
    var withoutAppFrame: Bool
    /// What the frames say that it waited for: `lock`, `sleep`, ...; null when it mostly ran.
    @Nullable var wait: String?
    var apps: [String]
    var versions: [String]
    var firstSeen: String
    var lastSeen: String
    /// The time lost in equal parts of the time from the first stall of all to the last one.
    var trendMs: [Double]
    /// The id of a report that shows it well.
    @Nullable var example: String?
    /// The cause of most of its time; null where nothing looked for one.
    @Nullable var cause: String?
    /// The time lost in loops whose watched time is recorded, per hour of it; null where there is none.
    @Nullable var rateMsPerHour: Double?
    /// What the rate is of: of `count` and `total_ms` the part of such loops.
    var watchedCount: Int
    var watchedTotalMs: Double
    /// The time lost by cause, the most first; stalls without a cause are absent.
    var causes: [CauseTimeRow]

    init(_ hotspot: Hotspot, rank: Int, totalLostMs: Double) {
        self.rank = rank
        signature = hexadecimal(hotspot.signature.hash)
        family = hexadecimal(hotspot.signature.family)
        title = hotspot.title
        count = hotspot.count
        totalMs = hotspot.total.milliseconds
        share = totalLostMs > 0 ? totalMs / totalLostMs : 0
        p50Ms = hotspot.p50.milliseconds
        p95Ms = hotspot.p95.milliseconds
        p99Ms = hotspot.p99.milliseconds
        maxMs = hotspot.max.milliseconds
        frames = hotspot.frames
        withoutAppFrame = hotspot.signature.isWithoutAppFrame
        wait = hotspot.signature.wait?.rawValue
        apps = hotspot.apps
        versions = hotspot.versions
        firstSeen = hotspot.firstSeen.rfc3339
        lastSeen = hotspot.lastSeen.rfc3339
        trendMs = hotspot.trend.map(\.total.milliseconds)
        example = hotspot.example?.description
        cause = hotspot.cause?.word
        rateMsPerHour = hotspot.ratePerHour
        watchedCount = hotspot.watched.count
        watchedTotalMs = hotspot.watched.total.milliseconds
        causes = hotspot.causesByTime.map {
            CauseTimeRow(class: $0.cause.word, totalMs: $0.total.milliseconds)
        }
    }
}

/// A part of a group's lost time, by cause.
struct CauseTimeRow: Encodable {
    var `class`: String
    var totalMs: Double
}

/// A hash as data and commands name it: sixteen hexadecimal digits.
func hexadecimal(_ hash: Int64) -> String {
    String(UInt64(bitPattern: hash), radix: 16).padded(with: "0", to: 16)
}

/// The shape of `top --csv`.
enum HotspotCSV {
    static let header = [
        "rank", "signature", "family", "title", "wait", "count", "total_ms", "share", "p50_ms",
        "p95_ms", "max_ms",
        "frames", "apps", "versions", "first_seen", "last_seen", "example", "p99_ms",
        "cause", "rate_ms_per_hour", "watched_count", "watched_total_ms",
    ]

    static func fields(_ row: HotspotRow) -> [CSVWriter.Field] {
        [
            .plain("\(row.rank)"), .plain(row.signature), .plain(row.family), .text(row.title),
            .plain(row.wait ?? ""), .plain("\(row.count)"),
            .plain("\(row.totalMs)"), .plain("\(row.share)"), .plain("\(row.p50Ms)"),
            .plain("\(row.p95Ms)"), .plain("\(row.maxMs)"),
            .text(row.frames.joined(separator: " <- ")),
            .text(row.apps.joined(separator: " ")), .text(row.versions.joined(separator: " ")),
            .plain(row.firstSeen), .plain(row.lastSeen), .plain(row.example ?? ""),
            .plain("\(row.p99Ms)"),
            .plain(row.cause ?? ""), .plain(row.rateMsPerHour.map { "\($0)" } ?? ""),
            .plain("\(row.watchedCount)"), .plain("\(row.watchedTotalMs)"),
        ]
    }
}
