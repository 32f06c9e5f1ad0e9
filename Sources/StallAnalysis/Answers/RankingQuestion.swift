// Which way a ranking is asked for. A central store that is large or was pruned is ranked from its roll-ups: as many rows as
// there are groups and days, not reports. All else is ranked from its reports.

package import StallModel

/// What a ranking is asked for.
package struct RankingQuestion {
    package var store: any QueryableStore
    package var filter: ReportFilter
    package var rules: GroupingRules
    package var key: GroupKey
    /// From so many stalls on, quantiles within 1.6 % and trends by day are good enough.
    package var exactLimit = 5000
    /// Told, before every report of a large store is read, that its groups were decided under other rules.
    package var noteOtherRules: () -> Void = {}

    package init(
        store: any QueryableStore, filter: ReportFilter = ReportFilter(),
        rules: GroupingRules = .builtIn, by key: GroupKey = .signature
    ) {
        self.store = store
        self.filter = filter
        self.rules = rules
        self.key = key
    }
}

extension RankingQuestion {
    /// Ranks from roll-ups where the store has them under these rules and there are many reports, none, or some were pruned;
    /// else exactly.
    ///
    /// - Parameter limit: So many groups are wanted.
    package func ranking(by order: RankingOrder, limit: Int) throws -> Ranking {
        if var ranking = try fromRollUps(by: order, limit: limit, withDays: true),
            try isLarge(ranking) || ranking.overview.isEmpty || lacksReports
        {
            try ranking.addExposure(from: store, filter, by: order)
            return ranking
        }
        try warnOfOtherRules()
        return try exactRanking(by: order)
    }

    /// Ranks several sets that are to be compared: all of them from roll-ups where all can be and one is large or was
    /// pruned, else all exactly, so that a group is the same on all sides.
    package static func rankings(_ questions: [RankingQuestion]) throws -> [Ranking] {
        let rankings = try questions.compactMap { try $0.fromRollUps(by: .total, withDays: false) }
        guard rankings.count == questions.count,
            try zip(questions, rankings).contains(where: { $0.isLarge($1) })
                || questions.contains(where: { try $0.lacksReports })
        else { return try questions.map { try $0.exactRanking(by: .total) } }
        return try zip(rankings, questions).map { ranking, question in
            var ranking = ranking
            try ranking.addExposure(from: question.store, question.filter, by: .total)
            return ranking
        }
    }

    /// Ranks every report that the filter selects.
    package func exactRanking(
        by order: RankingOrder,
        buckets makeBuckets: (UnixTime, UnixTime) throws -> TimeBuckets = Ranking.sparkline
    ) throws -> Ranking {
        let selection = try store.summaries(filter)
        let stalls = selection.reports.filter { $0.verdict == .stalled }
        let starts = stalls.lazy.map(\.start)
        var buckets: TimeBuckets?
        if let first = starts.min(), let last = starts.max() {
            buckets = try makeBuckets(first, last)
        }
        let stacks = Set(stalls.lazy.flatMap { $0.stacks.lazy.map(\.stack) })
        let groups = rank(
            stalls, runs: selection.runs, frames: try store.frames(ofStacks: stacks), by: order,
            group: key, buckets: buckets, rules: rules)
        var ranking = Ranking(
            overview: Overview(
                selection.reports, runs: selection.runs, example: groups.first?.example),
            groups: groups, key: key, buckets: buckets)
        try ranking.addExposure(from: store, filter, by: order)
        return ranking
    }

    /// The answer of the store's roll-ups; nil where it has none of this kind under these rules.
    ///
    /// - Parameters:
    ///   - limit: So many groups are wanted, with their examples; nil for all, without.
    ///   - buckets: How trends are divided, in parts of whole days; without it as the column TREND is.
    package func fromRollUps(
        by order: RankingOrder, limit: Int? = nil, withDays: Bool,
        buckets makeBuckets: ((UnixTime, UnixTime) throws -> TimeBuckets)? = nil
    ) throws -> Ranking? {
        guard key != .inclusive, try store.rulesHash() == rules.hash else { return nil }
        let answer = try store.aggregates(
            AggregateQuestion(
                filter, by: key, withDays: withDays, withExamples: limit != nil,
                largest: limit.flatMap { largest($0, by: order) }),
            grouper: DefaultGrouper(rules: rules))
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
        let groups = sorted(answer.groups.map { $0.divided(by: buckets) }, by: order)
        return Ranking(
            overview: Overview(answer, example: groups.first?.example), groups: groups,
            restCount: answer.groupCount - groups.count, key: key, buckets: buckets)
    }

    /// Whether stalls are asked for that only roll-ups hold.
    package var lacksReports: Bool {
        get throws {
            guard let pruned = try store.prunedBefore() else { return false }
            return filter.since.map { $0 < pruned } ?? true
        }
    }

    /// Too many stalls to read each.
    func isLarge(_ ranking: Ranking) -> Bool { ranking.overview.stallCount > exactLimit }

    private func warnOfOtherRules() throws {
        guard let stored = try store.rulesHash(), stored != rules.hash else { return }
        // How many there are does not depend on rules.
        let counted = try store.aggregates(
            AggregateQuestion(filter, by: .app, largest: LargestGroups(count: 1, by: .count)),
            grouper: DefaultGrouper(rules: rules))
        if try counted.counts[.stalled] ?? 0 > exactLimit || lacksReports { noteOtherRules() }
    }

    /// Which groups come first, where the store can tell before it has looked at all of them.
    private func largest(_ limit: Int, by order: RankingOrder) -> LargestGroups? {
        order == .rate && !key.isOfStalls ? nil : LargestGroups(count: limit, by: order)
    }
}

extension StallAggregate {
    /// The same with its days added up in the parts of a time.
    fileprivate func divided(by buckets: TimeBuckets?) -> StallAggregate {
        var divided = self
        divided.trend = Array(repeating: StallTotals(), count: buckets?.count ?? 0)
        for (day, stalls) in days {
            let noon = UnixTime(microseconds: Int64(day) * 86_400_000_000 + 43_200_000_000)
            guard let buckets, let index = buckets.index(of: Swift.max(noon, buckets.bounds[0]))
            else { continue }
            divided.trend[index].add(stalls)
        }
        return divided
    }
}
