// A central store that is large or was pruned is ranked from its roll-ups: as many rows as there are groups and days, not
// reports.

internal import StallAnalysis
internal import StallModel
internal import StallStore

extension Ranking {
    /// Ranks from roll-ups where the store has them under these rules and there are many reports, none, or some were pruned;
    /// else exactly.
    ///
    /// - Parameter limit: So many groups are wanted.
    static func fastest(
        store: ReportStore, filter: ReportFilter, rules: GroupingRules, by order: RankingOrder,
        group: GroupKey, limit: Int
    ) throws -> Ranking {
        let question = RankingQuestion(store: store, filter: filter, rules: rules, group: group)
        if var ranking = try question.fromRollUps(by: order, limit: limit, withDays: true),
            try ranking.isLarge || ranking.overview.isEmpty || question.lacksReports
        {
            try ranking.addExposure(from: store, filter, by: order)
            return ranking
        }
        try question.warnOfOtherRules()
        return try Ranking(store: store, filter: filter, rules: rules, by: order, group: group)
    }

    /// Ranks several sets that are to be compared: all of them from roll-ups where all can be and one is large or was
    /// pruned, else all exactly, so that a group is the same on all sides.
    static func fastest(_ questions: [RankingQuestion]) throws -> [Ranking] {
        let rankings = try questions.compactMap { try $0.fromRollUps(by: .total, withDays: false) }
        guard rankings.count == questions.count,
            try rankings.contains(where: \.isLarge)
                || questions.contains(where: { try $0.lacksReports })
        else {
            return try questions.map {
                try Ranking(
                    store: $0.store, filter: $0.filter, rules: $0.rules, by: .total,
                    group: $0.group)
            }
        }
        return try zip(rankings, questions).map { ranking, question in
            var ranking = ranking
            try ranking.addExposure(from: question.store, question.filter, by: .total)
            return ranking
        }
    }

    var isLarge: Bool { overview.isLarge }
}

extension Overview {
    /// From so many stalls on, quantiles within 1.6 % and trends by day are good enough.
    private static let exactLimit = 5000

    /// Too many stalls to read each.
    var isLarge: Bool { stallCount > Self.exactLimit }
}

/// What a ranking is asked for.
struct RankingQuestion {
    var store: ReportStore
    var filter: ReportFilter
    var rules: GroupingRules
    var group: GroupKey

    /// Whether stalls are asked for that only roll-ups tell of.
    var lacksReports: Bool {
        get throws {
            guard let pruned = try store.prunedBefore() else { return false }
            return filter.since.map { $0 < pruned } ?? true
        }
    }

    /// The answer of the store's roll-ups; nil where it has none of this kind under these rules.
    ///
    /// - Parameters:
    ///   - limit: So many groups are wanted, with their examples; nil for all, without.
    ///   - buckets: How trends are divided, in parts of whole days; without it as the column TREND is.
    func fromRollUps(
        by order: RankingOrder, limit: Int? = nil, withDays: Bool,
        buckets makeBuckets: ((UnixTime, UnixTime) throws -> TimeBuckets)? = nil
    ) throws -> Ranking? {
        guard let dimension = group.dimension, try store.rulesHash() == rules.hash else {
            return nil
        }
        let answer = try store.rollUps(
            filter, by: dimension, withDays: withDays, withExamples: limit != nil,
            largest: limit.flatMap { largest($0, by: order) }, grouper: DefaultGrouper(rules: rules)
        )
        var buckets: TimeBuckets?
        if withDays, let first = answer.firstRanked, let last = answer.lastRanked {
            if let makeBuckets {
                buckets = try makeBuckets(first, last)
            } else if (last.microseconds - first.microseconds)
                >= 86_400_000_000 * Int64(Ranking.sparklineParts)
            {
                // Days are the finest that there is.
                buckets = Ranking.sparkline(from: first, through: last)
            }
        }
        let hotspots = sorted(
            answer.groups.map { Hotspot($0, key: group, buckets: buckets) }, by: order)
        return Ranking(
            overview: Overview(answer, example: hotspots.first?.example), hotspots: hotspots,
            restCount: answer.groupCount - hotspots.count, group: group, buckets: buckets)
    }

    /// Says, before every report of a large store is read, why that is and what helps.
    fileprivate func warnOfOtherRules() throws {
        guard let stored = try store.rulesHash(), stored != rules.hash else { return }
        // How many there are does not depend on rules.
        let counted = try store.rollUps(
            filter, by: .app, largest: LargestGroups(count: 1, by: .count),
            grouper: DefaultGrouper(rules: rules))
        guard try Overview(counted, example: nil).isLarge || lacksReports else { return }
        say(
            "stallctl: \(store.path) is grouped by other rules than these, so every report is read: 'stallctl regroup' applies them"
                .printable)
    }

    /// Which groups come first, where the store can tell before it has looked at all of them.
    private func largest(_ limit: Int, by order: RankingOrder) -> LargestGroups? {
        switch order {
        case .total: LargestGroups(count: limit, by: .total)
        case .count: LargestGroups(count: limit, by: .count)
        case .max: LargestGroups(count: limit, by: .max)
        // Groups of functions are watched equally long.
        case .rate:
            [.signature, .family, .function, .cause].contains(group)
                ? LargestGroups(count: limit, by: .watched) : nil
        case .p95: LargestGroups(count: limit, by: .p95)
        }
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
        for (day, stalls) in rollUp.days {
            let noon = UnixTime(microseconds: Int64(day) * 86_400_000_000 + 43_200_000_000)
            guard let buckets, let index = buckets.index(of: Swift.max(noon, buckets.bounds[0]))
            else {
                continue
            }
            trend[index].count += stalls.count
            trend[index].total += stalls.total
            trend[index].longest = Swift.max(trend[index].longest, stalls.longest)
        }
        let signature = Signature(rollUp.group, key: key, name: rollUp.name)
        self.init(
            signature: signature, title: signature.title, frames: signature.keyFrames,
            count: rollUp.count, total: rollUp.total, p50: rollUp.p50, p95: rollUp.p95,
            p99: rollUp.p99, max: rollUp.max, squares: rollUp.squares, trend: trend,
            watched: rollUp.watched, causes: rollUp.causes,
            apps: rollUp.apps,
            versions: rollUp.versions, firstSeen: rollUp.first, lastSeen: rollUp.last,
            example: rollUp.example)
        title = signature.title(under: cause, in: key)
    }
}
