// One group as data: the shape of `top --json`. Scripts depend on the names.

internal import StallModel

package struct HotspotRow: Encodable {
    package let schema = "stallctl.hotspot/1"
    package var rank: Int
    package var signature: String
    /// The group of the first function alone, whatever called it.
    package var family: String
    package var title: String
    package var count: Int
    package var totalMs: Double
    /// Of the time lost in all groups, 0 to 1.
    package var share: Double
    package var p50Ms: Double
    package var p95Ms: Double
    package var p99Ms: Double
    package var maxMs: Double
    /// The functions that make the group, app frame first; empty for groups that other things make.
    package var frames: [String]
    /// None of the app's functions was on the stacks; `frames` are the system's.
    package var withoutAppFrame: Bool
    /// What the frames say that it waited for: `lock`, `sleep`, ...; null when it mostly ran.
    @Nullable package var wait: String?
    package var apps: [String]
    package var versions: [String]
    package var firstSeen: String
    package var lastSeen: String
    /// The time lost in equal parts of the time from the first stall of all to the last one.
    package var trendMs: [Double]
    /// The id of a report that shows it well.
    @Nullable package var example: String?
    /// The cause of most of its time; null where nothing looked for one.
    @Nullable package var cause: String?
    /// The time lost in loops whose watched time is recorded, per hour of it; null where there is none.
    @Nullable package var rateMsPerHour: Double?
    /// What the rate is of: of `count` and `total_ms` the part of such loops.
    package var watchedCount: Int
    package var watchedTotalMs: Double
    /// The time lost by cause, the most first; stalls without a cause are absent.
    package var causes: [CauseTimeRow]

    init(_ aggregate: StallAggregate, rank: Int, totalLostMs: Double) {
        self.rank = rank
        signature = hexadecimal(aggregate.group.signature)
        family = hexadecimal(aggregate.group.family)
        title = aggregate.title
        count = aggregate.count
        totalMs = aggregate.total.milliseconds
        share = totalLostMs > 0 ? totalMs / totalLostMs : 0
        p50Ms = aggregate.p50.milliseconds
        p95Ms = aggregate.p95.milliseconds
        p99Ms = aggregate.p99.milliseconds
        maxMs = aggregate.max.milliseconds
        frames = aggregate.frames
        withoutAppFrame = aggregate.group.isWithoutAppFrame
        wait = aggregate.group.wait?.rawValue
        apps = aggregate.apps
        versions = aggregate.versions
        firstSeen = aggregate.first.rfc3339
        lastSeen = aggregate.last.rfc3339
        trendMs = aggregate.trend.map(\.total.milliseconds)
        example = aggregate.example?.description
        cause = aggregate.cause?.word
        rateMsPerHour = aggregate.ratePerHour
        watchedCount = aggregate.watched.count
        watchedTotalMs = aggregate.watched.total.milliseconds
        causes = aggregate.causesByTime.map {
            CauseTimeRow(class: $0.cause.word, totalMs: $0.total.milliseconds)
        }
    }
}

/// A part of a group's lost time, by cause.
package struct CauseTimeRow: Encodable {
    package var `class`: String
    package var totalMs: Double
}

extension Ranking {
    /// The groups as data, the worst first.
    package var rows: [HotspotRow] {
        let total = totalLost.milliseconds
        return groups.enumerated().map { HotspotRow($1, rank: $0 + 1, totalLostMs: total) }
    }
}
