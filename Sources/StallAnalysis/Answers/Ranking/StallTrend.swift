// A group, or all stalls, over time.

package import StallModel
package import StallQuery

/// The bucket size of a trend.
package enum TrendUnit: String, CaseIterable, Sendable {
    case hour, day
}

/// The stalls of groups by day or hour.
package struct StallTrend: Sendable {
    package var unit: TrendUnit
    /// The title of the one group, or the number of groups.
    package var title: String
    package var buckets: TimeBuckets?
    /// One per bucket.
    package var parts: [StallTotals]
    package var totals: StallTotals
    /// Whether days are in UTC, whatever the requested zone: roll-ups have only those.
    package var isOfUTC: Bool
}

/// A query for a trend.
package struct TrendQuestion {
    package var ranking: RankingQuestion
    /// A name that matches groups' titles; nil for all stalls.
    package var name: String?
    /// Nil: hours for up to two days, otherwise days.
    package var unit: TrendUnit?
    /// Whole days or hours of the local time zone from the first instant to the last.
    package var buckets: (UnixTime, UnixTime, TrendUnit) throws -> TimeBuckets

    package init(
        _ ranking: RankingQuestion, name: String? = nil, unit: TrendUnit? = nil,
        buckets: @escaping (UnixTime, UnixTime, TrendUnit) throws -> TimeBuckets = {
            try TimeBuckets.utc(from: $0, through: $1, in: $2)
        }
    ) {
        self.ranking = ranking
        self.name = name
        self.unit = unit
        self.buckets = buckets
    }
}

extension TrendQuestion {
    /// The stalls of the matching groups, by bucket.
    ///
    /// - Throws: ``UnclearGroup`` if no group matches the name.
    package func trend() throws -> StallTrend {
        try ranking.store.consistently { try chosenTrend() }
    }

    private func chosenTrend() throws -> StallTrend {
        if name == nil, let trend = try allByDay() ?? allExactly() { return trend }
        let (ranking, isOfUTC) = try ranked()
        var groups = ranking.groups
        if let name {
            groups = groups.filter { $0.isMeant(by: name) }
            guard !groups.isEmpty || ranking.groups.isEmpty else {
                throw UnclearGroup(
                    path: self.ranking.store.path, name: name, found: [], known: ranking.groups)
            }
        }
        var parts = Array(repeating: StallTotals(), count: ranking.buckets?.count ?? 0)
        var totals = StallTotals()
        for group in groups {
            for (index, part) in group.trend.enumerated() {
                parts[index].add(part)
                totals.add(part)
            }
        }
        let isOfDays = ranking.buckets.map {
            $0.bounds[1].microseconds - $0.bounds[0].microseconds > 3_600_000_000
        }
        let title =
            name == nil
            ? "All groups" : groups.count == 1 ? groups[0].title : "\(groups.count) groups"
        return StallTrend(
            unit: unit ?? (isOfDays == true ? .day : .hour), title: title,
            buckets: ranking.buckets, parts: parts, totals: totals, isOfUTC: isOfUTC)
    }

    /// The trend of all groups, where days of roll-ups have it; nil if reports do.
    private func allByDay() throws -> StallTrend? {
        guard unit != .hour, let daily = try ranking.store.dailyTotals(ranking.filter),
            let first = daily.first, let last = daily.last
        else { return nil }
        let lacksReports = try ranking.lacksReports
        guard daily.count > ranking.exactLimit || lacksReports,
            unitNeeded(first, last, lacksReports) == .day
        else { return nil }
        let buckets = try bucketsNeeded(first, last, .day) {
            try .utc(from: $0, through: $1, in: .day)
        }
        var parts = Array(repeating: StallTotals(), count: buckets.count)
        var totals = StallTotals()
        for (day, stalls) in daily.days {
            let noon = UnixTime(microseconds: Int64(day) * 86_400_000_000 + 43_200_000_000)
            guard let index = buckets.index(of: noon) else { continue }
            parts[index].add(stalls)
            totals.add(stalls)
        }
        return StallTrend(
            unit: .day, title: "All groups", buckets: buckets, parts: parts, totals: totals,
            isOfUTC: true)
    }

    /// The trend of all groups, where the store adds up its reports by parts of a time; nil if they are to be read.
    private func allExactly() throws -> StallTrend? {
        var filter = ranking.filter
        guard !ranking.key.needsReports else { return nil }
        filter.verdicts = filter.verdicts ?? [.stalled]
        let (store, lacksReports) = (ranking.store, try ranking.lacksReports)
        // Totals by day show without reading the reports when these began, unless some were pruned.
        let daily = lacksReports ? nil : try store.dailyTotals(filter)
        let known = daily.flatMap { days in
            days.first.flatMap { first in days.last.map { (first, $0) } }
        }
        guard let (first, last) = try known ?? store.timeSpan(filter).map({ ($0.first, $0.last) })
        else { return nil }
        let unit = unitNeeded(first, last, lacksReports)
        let buckets = try bucketsNeeded(first, last, unit) { try self.buckets($0, $1, unit) }
        guard let parts = try store.totals(filter, between: buckets.bounds) else { return nil }
        let totals = parts.reduce(into: StallTotals()) { $0.add($1) }
        return StallTrend(
            unit: unit, title: "All groups", buckets: buckets, parts: parts, totals: totals,
            isOfUTC: false)
    }

    private func unitNeeded(
        _ first: UnixTime, _ last: UnixTime, _ lacksReports: Bool
    ) -> TrendUnit {
        let days = Double(last.microseconds - first.microseconds) / 86_400e6
        return unit ?? (days <= 2 && !lacksReports ? .hour : .day)
    }

    /// The groups that match the name, where to look for them first and to add up their days then is less than to add up
    /// all days of all groups; nil for all groups, also where none matches: then these are named.
    private func named() throws -> Set<Int64>? {
        guard let name, ranking.key == .signature,
            let all = try ranking.fromRollUps(by: .total, withDays: false, withDurations: false)
        else { return nil }
        let found = all.groups.filter { $0.isMeant(by: name) }.map(\.group.signature)
        return found.isEmpty ? nil : Set(found)
    }

    /// The groups, by bucket: all, or at least those that match the name. Days of a large or pruned central store come from roll-ups and are in UTC.
    private func ranked() throws -> (Ranking, isOfUTC: Bool) {
        let lacksReports = try ranking.lacksReports
        if unit != .hour,
            let answer = try ranking.fromRollUps(
                by: .total, among: try named(), withDays: true, withDurations: false,
                buckets: { first, last in
                    try bucketsNeeded(first, last, .day) {
                        try .utc(from: $0, through: $1, in: .day)
                    }
                }),
            ranking.isLarge(answer) || lacksReports, let first = answer.overview.first,
            let last = answer.overview.last, unitNeeded(first, last, lacksReports) == .day
        {
            return (answer, true)
        }
        let exact = try ranking.exactRanking(by: .total) { first, last in
            let unit = unitNeeded(first, last, lacksReports)
            return try bucketsNeeded(first, last, unit) { try buckets($0, $1, unit) }
        }
        return (exact, false)
    }

    /// The buckets from the first stall to the last. Where these would be very many, as they are if one machine's clock
    /// was wrong, a stretch without stalls is one bucket.
    private func bucketsNeeded(
        _ first: UnixTime, _ last: UnixTime, _ unit: TrendUnit,
        _ make: (UnixTime, UnixTime) throws -> TimeBuckets
    ) throws -> TimeBuckets {
        let step = unit == .day ? 86_400e6 : 3_600e6
        guard (Double(last.microseconds) - Double(first.microseconds)) / step >= 10_000 else {
            return try make(first, last)
        }
        var stretches: [ClosedRange<Int64>] = []
        for day in try daysOfStalls().sorted() {
            // A month without stalls is shown day by day.
            if let open = stretches.last, day - open.upperBound <= 31 {
                stretches[stretches.count - 1] = open.lowerBound...day
            } else {
                stretches.append(day...day)
            }
        }
        let count = stretches.reduce(0) {
            $0 + (Double($1.upperBound) - Double($1.lowerBound) + 1) * 86_400e6 / step
        }
        guard count <= Double(TimeBuckets.largestCount) else { throw TimeSpanError(unit: unit) }
        var bounds: [UnixTime] = []
        for stretch in stretches {
            let begin = UnixTime(noonOf: Int(stretch.lowerBound))
            let end = UnixTime(noonOf: Int(stretch.upperBound))
            let half: Int64 = 43_200_000_000
            bounds += try make(
                UnixTime(microseconds: begin.microseconds - half),
                UnixTime(microseconds: end.microseconds + half - 1)
            ).bounds.drop { bound in bounds.last.map { bound <= $0 } ?? false }
        }
        return bounds.count > 1 ? TimeBuckets(bounds: bounds) : try make(first, last)
    }

    /// The days since 1970, UTC, that have stalls.
    private func daysOfStalls() throws -> Set<Int64> {
        if let daily = try ranking.store.dailyTotals(ranking.filter) {
            return Set(daily.days.keys.map(Int64.init))
        }
        var filter = ranking.filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        let reports = try ranking.store.summaries(filter).reports
        return Set(
            reports.map { report in
                let (day, rest) = report.start.microseconds.quotientAndRemainder(
                    dividingBy: 86_400_000_000)
                return rest < 0 ? day - 1 : day
            })
    }
}

extension TimeBuckets {
    /// The maximum number of buckets; bounds the cost of a wrong clock.
    package static let largestCount = 100_000

    /// Whole days or hours in UTC from the first instant to the last.
    package static func utc(
        from first: UnixTime, through last: UnixTime, in unit: TrendUnit
    ) throws(TimeSpanError) -> TimeBuckets {
        let step: Int64 = unit == .day ? 86_400_000_000 : 3_600_000_000
        let remainder = first.microseconds % step
        let begin = first.microseconds - (remainder < 0 ? remainder + step : remainder)
        let (span, overflow) = last.microseconds.subtractingReportingOverflow(begin)
        guard !overflow, span / step < largestCount else { throw TimeSpanError(unit: unit) }
        let count = max(span, 0) / step + 1
        return TimeBuckets(
            bounds: (0...count).map { UnixTime(microseconds: begin + $0 * step) })
    }
}

/// The time range has too many buckets.
package struct TimeSpanError: Error, CustomStringConvertible {
    package var unit: TrendUnit

    package init(unit: TrendUnit) { self.unit = unit }

    package var description: String {
        "there are more than \(TimeBuckets.largestCount) \(unit.rawValue)s between the first stall and the last; "
            + "narrow the range with --since and --until"
    }
}
