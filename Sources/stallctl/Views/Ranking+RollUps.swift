// A large central store is ranked from its roll-ups: as many rows as there are groups and days, not reports.

internal import StallAnalysis
internal import StallModel
internal import StallStore

extension Ranking {
    /// From so many stalls on, quantiles within 1.6 % and trends by day are good enough.
    private static let exactLimit = 5000

    /// Ranks from roll-ups where the store has them under these rules and there are many reports, else exactly.
    static func fastest(
        store: ReportStore, filter: ReportFilter, rules: GroupingRules, by order: RankingOrder,
        group: GroupKey
    ) throws -> Ranking {
        if let dimension = group.dimension, try store.rulesHash() == rules.hash {
            let answer = try store.rollUps(
                filter, by: dimension, withDays: true, grouper: DefaultGrouper(rules: rules))
            if answer.groups.reduce(0, { $0 + $1.count }) > exactLimit {
                return Ranking(answer, by: order, group: group)
            }
        }
        return try Ranking(store: store, filter: filter, rules: rules, by: order, group: group)
    }

    private init(_ answer: RollUpAnswer, by order: RankingOrder, group: GroupKey) {
        var buckets: TimeBuckets?
        if let first = answer.first, let last = answer.last {
            buckets = Self.sparkline(from: first, through: last)
            // Days are the finest that there is.
            let part = (last.microseconds - first.microseconds) / Int64(buckets!.count)
            if part < 86_400_000_000 { buckets = nil }
        }
        let hotspots = sorted(
            answer.groups.map { Hotspot($0, key: group, buckets: buckets) }, by: order)
        self.init(
            overview: Overview(answer, example: hotspots.first?.example), hotspots: hotspots,
            group: group, buckets: buckets)
    }
}

extension GroupKey {
    /// What the store adds up by; nil for what it does not.
    fileprivate var dimension: RollUpDimension? {
        switch self {
        case .signature: .signature
        case .family: .family
        case .function: .function
        case .cause: .cause
        case .loop: .loop
        case .version: .version
        case .host: .host
        case .app: .app
        case .inclusive: nil
        }
    }
}

extension Hotspot {
    fileprivate init(_ rollUp: RollUp, key: GroupKey, buckets: TimeBuckets?) {
        var trend = Array(repeating: StallTotals(), count: buckets?.count ?? 0)
        for (day, total) in rollUp.days {
            let noon = UnixTime(microseconds: Int64(day) * 86_400_000_000 + 43_200_000_000)
            guard let buckets, let index = buckets.index(of: Swift.max(noon, buckets.bounds[0]))
            else {
                continue
            }
            trend[index].total += total
        }
        let name = key == .version ? listed(rollUp.apps) + " " + rollUp.name : rollUp.name
        let signature = Signature(rollUp.group, key: key, name: name)
        self.init(
            signature: signature, title: signature.title, frames: signature.keyFrames,
            count: rollUp.count, total: rollUp.total, p50: rollUp.p50, p95: rollUp.p95,
            p99: rollUp.p99, max: rollUp.max, trend: trend, causes: rollUp.causes,
            apps: rollUp.apps,
            versions: rollUp.versions, firstSeen: rollUp.first, lastSeen: rollUp.last,
            example: rollUp.example)
    }
}
