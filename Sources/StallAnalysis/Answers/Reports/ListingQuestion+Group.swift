// The newest stalls of a group, for `top --watch`, which repeats the query: only the days that the group's stalls began
// on are read, the newest first, until there are enough.

internal import StallModel
internal import StallQuery

extension ListingQuestion {
    /// The newest stalls of a group; nil if the store has no totals by day, as an agent's, or other groups.
    func newest(of group: (key: GroupKey, signature: Int64)) throws -> Listing? {
        guard let days = try days(of: group) else { return nil }
        let counted = limit.addingSaturated(Listing.furtherCount)
        var found = ReportSelection(runs: [], reports: [])
        for day in days where found.reports.count < counted {
            let selection = try ranking.store.newest(
                ranking.filter.narrowed(toDay: day),
                signature: group.key == .signature ? group.signature : nil, count: .max)
            var reports = selection.reports
            try select(&reports, of: group, selection.runs)
            found.append(reports.prefix(counted - found.reports.count), of: selection.runs)
        }
        var listing = try Listing(
            showing: found.reports.prefix(limit), of: found, reportCount: found.reports.count,
            store: ranking.store, rules: ranking.rules)
        listing.isCountCut = found.reports.count == counted
        return listing
    }

    /// The days (since 1970, UTC) that may have reports of a group, newest first.
    private func days(of group: (key: GroupKey, signature: Int64)) throws -> [Int]? {
        let store = ranking.store
        guard ranking.filter.states == nil, try store.rulesHash() == ranking.rules.hash
        else { return nil }
        var days: [Int]
        if group.key.needsReports {
            guard let totals = try store.dailyTotals(ranking.filter) else { return nil }
            days = Array(totals.days.keys)
        } else {
            let answer = try store.aggregates(
                AggregateQuestion(
                    ranking.filter, by: group.key, withDays: true, withExamples: false,
                    withDurations: false,
                    largest: group.key == .signature
                        ? LargestGroups(by: .total, among: [group.signature]) : nil),
                grouper: DefaultGrouper(rules: ranking.rules))
            let listed = answer.groups.first { $0.group.signature == group.signature }
            days = listed.map { Array($0.days.keys) } ?? []
        }
        if let pruned = try store.prunedBefore() { days.removeAll { $0 < pruned.day } }
        return days.sorted(by: >)
    }
}

extension ReportFilter {
    /// This filter for the reports that began on one day, since 1970, UTC.
    fileprivate func narrowed(toDay day: Int) -> ReportFilter {
        let (first, next) = (UnixTime(day: day), UnixTime(day: day &+ 1))
        var filter = self
        filter.since = max(since ?? first, first)
        filter.until = min(until ?? next, next)
        return filter
    }
}

extension ReportSelection {
    /// Adds reports of another answer, which has its own numbers of runs.
    fileprivate mutating func append(_ reports: ArraySlice<ReportSummary>, of runs: [ProcessRun]) {
        var numbers: [Int: Int] = [:]
        for var report in reports {
            let number = numbers[report.run] ?? self.runs.count
            if number == self.runs.count {
                self.runs.append(runs[report.run])
                numbers[report.run] = number
            }
            report.run = number
            self.reports.append(report)
        }
    }
}

extension UnixTime {
    private static let microsecondsOfDay: Int64 = 86_400_000_000

    /// The beginning of a day since 1970, UTC; the first or last time there is for a day beyond.
    fileprivate init(day: Int) {
        let (time, overflow) = Int64(day).multipliedReportingOverflow(by: Self.microsecondsOfDay)
        self.init(microseconds: !overflow ? time : day < 0 ? .min : .max)
    }

    fileprivate var day: Int { Int(microseconds / Self.microsecondsOfDay) }
}
