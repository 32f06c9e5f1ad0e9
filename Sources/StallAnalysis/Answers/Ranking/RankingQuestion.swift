// Chooses how to compute a ranking. A large or pruned central store is ranked from its roll-ups (rows per group and
// day); any other store from its reports.

package import StallModel
package import StallQuery

/// A query for a ranking.
package struct RankingQuestion {
    package var store: any QueryableStore
    package var filter: ReportFilter
    package var rules: GroupingRules
    package var key: GroupKey
    /// From this number of stalls, quantiles within 1.6 % and daily trends are accurate enough.
    package var exactLimit = 5000
    /// Called before every report of a large store is read because its groups were computed with different rules.
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
    /// Ranks from roll-ups if the store has them for these rules and has many reports, none, or pruned ones; otherwise
    /// exactly.
    ///
    /// - Parameter limit: The number of groups needed.
    package func ranking(by order: RankingOrder, limit: Int) throws -> Ranking {
        try store.consistently { try chosenRanking(by: order, limit: limit) }
    }

    private func chosenRanking(by order: RankingOrder, limit: Int) throws -> Ranking {
        if var ranking = try fromRollUps(by: order, limit: limit, withDays: true),
            try isLarge(ranking) || ranking.overview.isEmpty || lacksReports
        {
            try ranking.addExposure(from: store, filter, by: order)
            return ranking
        }
        if key == .inclusive, var ranking = try fromTable(by: order, limit: limit) {
            try ranking.addExposure(from: store, filter, by: order)
            return ranking
        }
        try warnOfOtherRules()
        return try exactRanking(by: order)
    }

    /// The ranking by all functions on the stacks of a large central store; nil for others, and for an order that only
    /// all durations of all functions give.
    private func fromTable(by order: RankingOrder, limit: Int) throws -> Ranking? {
        // The table is of stalls.
        guard order != .p95, filter.rankedVerdicts == [.stalled], filter.states == nil,
            try store.rulesHash() != nil
        else { return nil }
        let expected = try store.dailyTotals(filter)?.count
        guard expected ?? .max > exactLimit else { return nil }
        let table = try store.stallTable(filter, expected: expected ?? 0)
        guard table.stalls.count > exactLimit else { return nil }
        let classifier = try StackClassifier(
            store, stacks: table.sets.stacks, executables: table.sets.executables, rules: rules)
        let inclusive = InclusiveRanking(
            table, classifier, by: order, limit: limit, exactLimit: exactLimit)
        return try inclusive.ranking { try store.reportID(source: $0, seq: $1) }
    }

    /// Ranks several sets for comparison: all from roll-ups if all have them and one is large or pruned, otherwise all
    /// exactly, so that a group is the same on all sides.
    package static func rankings(_ questions: [RankingQuestion]) throws -> [Ranking] {
        try questions.map(\.store).consistently { try chosenRankings(questions) }
    }

    private static func chosenRankings(_ questions: [RankingQuestion]) throws -> [Ranking] {
        let rankings = try questions.compactMap {
            try $0.fromRollUps(by: .total, withDays: false, withDurations: false)
        }
        guard rankings.count == questions.count,
            try zip(questions, rankings).contains(where: { $0.isLarge($1) })
                || questions.contains(where: { try $0.lacksReports })
        else { return try questions.map { try $0.exactRanking(by: .total, withRuns: true) } }
        let exposed = try zip(rankings, questions).map { ranking, question in
            var ranking = ranking
            try ranking.addExposure(from: question.store, question.filter, by: .total)
            return ranking
        }
        let judged = ComparisonJudge.largestGroups(exposed)
        return try zip(exposed, questions).map { ranking, question in
            var ranking = ranking
            try question.addRuns(to: &ranking, of: judged)
            return ranking
        }
    }

    /// Ranks every report that the filter selects.
    ///
    /// - Parameter withRuns: Also add up each group by process run.
    package func exactRanking(
        by order: RankingOrder, withRuns: Bool = false,
        buckets makeBuckets: ((UnixTime, UnixTime) throws -> TimeBuckets)? = nil
    ) throws -> Ranking {
        try store.consistently { try rankingOfReports(by: order, withRuns, makeBuckets) }
    }

    private func rankingOfReports(
        by order: RankingOrder, _ withRuns: Bool,
        _ makeBuckets: ((UnixTime, UnixTime) throws -> TimeBuckets)?
    ) throws -> Ranking {
        let selection = try store.summaries(filter)
        let ranked = filter.rankedVerdicts
        let stalls = selection.reports.filter { ranked.contains($0.verdict) }
        let starts = stalls.lazy.map(\.start)
        var buckets: TimeBuckets?
        if let first = starts.min(), let last = starts.max() {
            buckets =
                try makeBuckets?(first, last)
                ?? Ranking.sparkline(from: first, through: last, days: starts.map { ($0, 1) })
        }
        // Other groups do not depend on stacks.
        let stacks =
            key.isOfStalls ? Set(stalls.lazy.flatMap { $0.stacks.lazy.map(\.stack) }) : []
        let groups = rank(
            stalls, runs: selection.runs, frames: try store.frames(ofStacks: stacks), by: order,
            group: key, buckets: buckets, withRuns: withRuns, rules: rules, ranked: ranked)
        var ranking = Ranking(
            overview: Overview(
                selection.reports, runs: selection.runs, example: groups.first?.example,
                ranked: ranked),
            groups: groups, key: key, buckets: buckets)
        try ranking.addExposure(from: store, filter, by: order)
        if withRuns {
            let seen = Set(stalls.lazy.map(\.run)).compactMap { number in
                selection.runs.indices.contains(number) ? selection.runs[number] : nil
            }
            ranking.runs = .known(try comparedRuns(ofStalls: seen))
            if key == .inclusive { ranking.allRuns = byRun(stalls, selection.runs) }
        }
        return ranking
    }

    /// The ranking from the store's roll-ups; nil if it has none of this kind for these rules.
    ///
    /// - Parameters:
    ///   - limit: The number of groups needed, with their examples; nil for all, without examples.
    ///   - signatures: Only these groups, where they are by signature; nil for all.
    ///   - withDurations: Otherwise quantiles and sums of squares may be zero.
    ///   - buckets: The buckets of the trends, in whole days; by default those of the TREND column.
    package func fromRollUps(
        by order: RankingOrder, limit: Int? = nil, among signatures: Set<Int64>? = nil,
        withDays: Bool, withDurations: Bool = true,
        buckets makeBuckets: ((UnixTime, UnixTime) throws -> TimeBuckets)? = nil
    ) throws -> Ranking? {
        guard !key.needsReports, filter.states == nil, try store.rulesHash() == rules.hash
        else { return nil }
        let answer = try store.aggregates(
            AggregateQuestion(
                filter, by: key, withDays: withDays, withExamples: limit != nil,
                withDurations: withDurations,
                largest: signatures.map { LargestGroups(by: order, among: $0) }
                    ?? limit.flatMap { LargestGroups($0, by: order, of: key) }),
            grouper: DefaultGrouper(rules: rules))
        var buckets: TimeBuckets?
        if withDays, let first = answer.firstRanked, let last = answer.lastRanked {
            if let makeBuckets {
                buckets = try makeBuckets(first, last)
            } else if (last.microseconds - first.microseconds)
                >= 86_400_000_000 * Int64(Ranking.sparklineParts)
            {
                // The resolution of roll-ups is a day.
                let days = answer.groups.flatMap { group in
                    group.days.map { (UnixTime(noonOf: $0), $1.count) }
                }
                buckets = Ranking.sparkline(from: first, through: last, days: days)
            }
        }
        let groups = sorted(answer.groups.map { $0.divided(by: buckets) }, by: order)
        return Ranking(
            overview: Overview(
                answer, example: groups.first?.example, ranked: filter.rankedVerdicts),
            groups: groups,
            restCount: answer.groupCount - groups.count, key: key, buckets: buckets)
    }

    /// Whether the filter selects stalls whose reports were pruned.
    package var lacksReports: Bool {
        get throws {
            guard let pruned = try store.prunedBefore() else { return false }
            return filter.since.map { $0 < pruned } ?? true
        }
    }

    /// The day in which the filter's time begins or ends, if its reports were pruned: roll-ups are of whole days, so
    /// that the stalls of the rest of that day are missing.
    package var shortenedDay: UnixTime? {
        get throws {
            guard let pruned = try store.prunedBefore() else { return nil }
            let day: Int64 = 86_400_000_000
            return [filter.since, filter.until].compactMap(\.self).first {
                $0 < pruned && $0.microseconds % day != 0
            }
        }
    }

    /// Too many stalls to read one by one.
    func isLarge(_ ranking: Ranking) -> Bool { ranking.overview.stallCount > exactLimit }

    private func warnOfOtherRules() throws {
        // Rules do not decide these groups.
        guard key != .os, key != .device, filter.states == nil else { return }
        guard let stored = try store.rulesHash(), stored != rules.hash else { return }
        // The number of stalls does not depend on the rules.
        let counted = try store.aggregates(
            AggregateQuestion(filter, by: .app, largest: LargestGroups(count: 1, by: .count)),
            grouper: DefaultGrouper(rules: rules))
        let overview = Overview(counted, example: nil, ranked: filter.rankedVerdicts)
        if try overview.stallCount > exactLimit || lacksReports { noteOtherRules() }
    }

}

extension AggregateQuestion {
    /// The first question of `ranking`.
    package static func largest(
        _ limit: Int, _ filter: ReportFilter, by key: GroupKey, order: RankingOrder
    ) -> AggregateQuestion {
        AggregateQuestion(
            filter, by: key, withDays: true, largest: LargestGroups(limit, by: order, of: key))
    }
}

extension LargestGroups {
    /// Nil where a store cannot sort before it has read all groups.
    fileprivate init?(_ limit: Int, by order: RankingOrder, of key: GroupKey) {
        guard order != .rate || key.isOfStalls else { return nil }
        self.init(count: limit, by: order)
    }
}

extension StallAggregate {
    /// The same aggregate with its days summed into buckets.
    fileprivate func divided(by buckets: TimeBuckets?) -> StallAggregate {
        var divided = self
        divided.trend = Array(repeating: StallTotals(), count: buckets?.count ?? 0)
        for (day, stalls) in days {
            let noon = UnixTime(noonOf: day)
            guard let buckets, let last = buckets.bounds.last else { continue }
            // The first and the last day may have begun before the first bucket, and end after the last one.
            let end = UnixTime(microseconds: last.microseconds - 1)
            guard let index = buckets.index(of: min(Swift.max(noon, buckets.bounds[0]), end))
            else { continue }
            divided.trend[index].add(stalls)
        }
        return divided
    }
}
