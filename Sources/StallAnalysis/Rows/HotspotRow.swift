// One group as JSON: the schema of `top --json`. Key names are a contract.

internal import StallModel
package import StallQuery

package struct HotspotRow: Encodable {
    package let schema = "stallctl.hotspot/1"
    package var rank: Int
    package var signature: String
    /// The hash of the first function alone, whatever called it.
    package var family: String
    package var title: String
    package var count: Int
    package var totalMs: Double
    /// The part of it that was the threads' own: without waits for a CPU and stops. Groups are ranked by it.
    package var ownMs: Double
    /// Share of the time lost in all groups, 0 to 1.
    package var share: Double
    package var p50Ms: Double
    package var p95Ms: Double
    package var p99Ms: Double
    package var maxMs: Double
    /// The key frames, app frame first; empty unless grouped by functions.
    package var frames: [String]
    /// No app function was on the stacks; `frames` are the system's.
    package var withoutAppFrame: Bool
    /// The kind of its wait, by its frames: `lock`, `sleep`, ...; null if mostly running.
    @Nullable package var wait: String?
    package var apps: [String]
    package var versions: [String]
    package var firstSeen: String
    package var lastSeen: String
    /// The time lost, in equal buckets from the first stall of all groups to the last.
    package var trendMs: [Double]
    /// The id of a representative report.
    @Nullable package var example: String?
    /// The cause of most of its time; null if none was determined.
    @Nullable package var cause: String?
    /// The time lost in watched loops, per watched hour; null without watched time.
    @Nullable package var rateMsPerHour: Double?
    /// The parts of `count` and `total_ms` in watched loops, which the rate is based on.
    package var watchedCount: Int
    package var watchedTotalMs: Double
    /// The time lost by cause, largest first; stalls without a cause are omitted.
    package var causes: [CauseTimeRow]

    init(_ aggregate: StallAggregate, rank: Int, totalLostMs: Double) {
        self.rank = rank
        signature = hexadecimal(aggregate.group.signature)
        family = hexadecimal(aggregate.group.family)
        title = aggregate.title
        count = aggregate.count
        totalMs = aggregate.total.milliseconds
        ownMs = aggregate.own.milliseconds
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

/// A group's time lost with one cause.
package struct CauseTimeRow: Encodable {
    package var `class`: String
    package var totalMs: Double
}

extension Ranking {
    /// The groups as JSON rows, largest first.
    package var rows: [HotspotRow] {
        let total = totalLost.milliseconds
        return groups.enumerated().map { HotspotRow($1, rank: $0 + 1, totalLostMs: total) }
    }
}
