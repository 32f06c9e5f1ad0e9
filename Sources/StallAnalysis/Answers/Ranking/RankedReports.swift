// Groups, aggregates and sorts reports one by one: exact, with any rules, in time linear in the reports. Only stalls
// that the app itself caused are ranked, unless others are asked for; time in which the process was suspended or starved
// is not evidence about its functions.

package import StallModel
package import StallQuery

/// Groups the reports with the ranked verdicts and sorts the groups by the own time lost.
///
/// - Parameters:
///   - runs: The process runs of the reports.
///   - frames: The frames of the reports' stacks, innermost first.
///   - buckets: The buckets of each group's trend.
///   - withRuns: Also add up each group by process run.
package func rank(
    _ reports: [ReportSummary], runs: [ProcessRun], frames: [Int64: [Frame]],
    by order: RankingOrder = .total, group key: GroupKey = .signature, buckets: TimeBuckets? = nil,
    withRuns: Bool = false, rules: GroupingRules = .builtIn,
    ranked: Set<StallVerdict> = [.stalled]
) -> [StallAggregate] {
    var cache = SignatureCache(frames: frames, rules: rules)
    var groups: [ReportGroup: [Stall]] = [:]
    for (index, report) in reports.enumerated() where ranked.contains(report.verdict) {
        let run = runs.indices.contains(report.run) ? runs[report.run] : nil
        if key == .inclusive {
            for (group, share) in cache.functions(of: report, in: run) {
                func part(_ time: Duration) -> Duration {
                    .nanoseconds(Int64(nearest: Double(time.nanoseconds) * share))
                }
                groups[group, default: []].append(
                    Stall(
                        report: index, duration: part(report.duration),
                        delayed: part(report.delayed)))
            }
        } else {
            let group = key.group(of: report, in: run) { cache.group(of: report, in: run) }
            groups[group, default: []].append(
                Stall(report: index, duration: report.duration, delayed: report.delayed))
        }
    }
    let aggregates = joined(groups).map { group, stalls in
        var aggregate = StallAggregate(
            group, stalls, by: key, reports: reports, runs: runs, buckets: buckets)
        if withRuns { aggregate.runs = byRun(stalls, reports, runs) }
        return aggregate
    }
    return sorted(aggregates, by: order)
}

/// Sorts groups, largest first.
package func sorted(_ groups: [StallAggregate], by order: RankingOrder) -> [StallAggregate] {
    groups.sorted(by: order.isWorse)
}

/// A report's share in a group.
private struct Stall {
    /// Index into the reports.
    var report: Int
    var duration: Duration
    /// The part that was not the thread's own.
    var delayed: Duration
}

/// Groups with the same hash. Groups of truncated stacks join the group of complete stacks whose prefix they are.
private func joined(_ groups: [ReportGroup: [Stall]]) -> [(ReportGroup, [Stall])] {
    // Titles within a group may differ in what the stall waited for and in truncated stacks: the heaviest complete one
    // wins.
    let weighed = groups.map { (group: $0, stalls: $1, total: totalDuration($1)) }
    let variants = weighed.sorted { left, right in
        if left.group.isCut != right.group.isCut { return right.group.isCut }
        return left.total != right.total
            ? left.total > right.total : left.group.precedes(right.group)
    }
    var numbers: [Int64: Int] = [:]
    var joined: [(group: ReportGroup, stalls: [Stall])] = []
    for (group, stalls, _) in variants {
        if let number = numbers[group.signature] {
            joined[number].stalls += stalls
        } else {
            numbers[group.signature] = joined.count
            joined.append((group, stalls))
        }
    }
    let joins = joinsOfCutGroups(
        joined.map { group, stalls in
            JoinableGroup(
                signature: group.signature, family: group.family, frames: group.frames,
                isCut: group.isCut, total: totalDuration(stalls))
        })
    for (cut, whole) in joins { joined[whole].stalls += joined[cut].stalls }
    return joined.indices.filter { joins[$0] == nil }.map { joined[$0] }
}

/// Every report once, by process run.
func byRun(_ reports: [ReportSummary], _ runs: [ProcessRun]) -> [RunTotals] {
    let stalls = reports.enumerated().map { index, report in
        Stall(report: index, duration: report.duration, delayed: report.delayed)
    }
    return byRun(stalls, reports, runs)
}

private func byRun(
    _ stalls: [Stall], _ reports: [ReportSummary], _ runs: [ProcessRun]
) -> [RunTotals] {
    var sums: [Int: RunTotals] = [:]
    for stall in stalls {
        let report = reports[stall.report]
        guard runs.indices.contains(report.run) else { continue }
        var one = StallTotals()
        one.add(stall.duration)
        sums[report.run, default: RunTotals(run: runs[report.run].id)]
            .add(one, isWatched: report.isWatched)
    }
    return Array(sums.values)
}

private func totalDuration(_ stalls: [Stall]) -> Duration {
    stalls.reduce(.zero) { $0 + $1.duration }
}

extension RankingOrder {
    /// Ties are broken by visible values, so that the ranking is deterministic.
    fileprivate func isWorse(_ left: StallAggregate, _ right: StallAggregate) -> Bool {
        switch self {
        case .count where left.count != right.count: left.count > right.count
        case .p95 where left.p95 != right.p95: left.p95 > right.p95
        case .rate where left.ratePerHour != right.ratePerHour:
            (left.ratePerHour ?? 0) > (right.ratePerHour ?? 0)
        case .max where left.max != right.max: left.max > right.max
        default:
            left.own != right.own
                ? left.own > right.own
                : (left.title, left.group.signature) < (right.title, right.group.signature)
        }
    }
}

extension GroupKey {
    /// The group of a report under this key; any but `inclusive`.
    func group(
        of report: ReportSummary, in run: ProcessRun?, _ group: () -> ReportGroup
    ) -> ReportGroup {
        let fact: String? =
            switch self {
            case .signature, .inclusive, .family, .function: nil
            case .cause: report.cause?.word
            case .loop: report.loop
            case .version: run.map { "\($0.app) \($0.version)" }
            case .host: run?.host
            case .app: run?.app
            case .os: run?.os
            case .device: run?.device
            }
        switch self {
        case .signature, .inclusive, .family, .function: return group().grouped(by: self)
        case .cause, .loop, .version, .host, .app, .os, .device:
            return ReportGroup(fact: fact, of: self)
        }
    }
}

extension StallAggregate {
    fileprivate init(
        _ group: ReportGroup, _ stalls: [Stall], by key: GroupKey, reports: [ReportSummary],
        runs: [ProcessRun], buckets: TimeBuckets?
    ) {
        // In a fixed order, so that floating-point sums do not depend on the order of the reports.
        let stalls = stalls.sorted { $0.duration < $1.duration }
        let durations = stalls.map(\.duration)
        let runs = Set(stalls.map { reports[$0.report].run })
            .compactMap { runs.indices.contains($0) ? runs[$0] : nil }
        // Of equal ones the first by its time, then by its id.
        let longest = stalls.max { one, other in
            if one.duration != other.duration { return one.duration < other.duration }
            let (first, second) = (reports[one.report], reports[other.report])
            return first.start != second.start
                ? first.start > second.start : first.id.description > second.id.description
        }!
        let starts = stalls.lazy.map { reports[$0.report].start }
        var (totals, watched) = (StallTotals(), StallTotals())
        var trend = Array(repeating: StallTotals(), count: buckets?.count ?? 0)
        var causes: [CauseClass: Duration] = [:]
        for stall in stalls {
            totals.add(stall.duration, delayed: stall.delayed)
            if reports[stall.report].isWatched {
                watched.add(stall.duration, delayed: stall.delayed)
            }
            if let cause = reports[stall.report].cause {
                causes[cause, default: .zero] += stall.duration
            }
            guard let bucket = buckets?.index(of: reports[stall.report].start) else { continue }
            trend[bucket].add(stall.duration)
        }
        self.init(
            by: key, group, totals: totals, watched: watched, p50: quantile(0.5, of: durations),
            p95: quantile(0.95, of: durations), p99: quantile(0.99, of: durations),
            causes: causes, apps: Set(runs.map(\.app)).sorted(),
            versions: Set(runs.map(\.version)).sorted(),
            loops: Set(stalls.map { reports[$0.report].loop }).sorted(), first: starts.min()!,
            last: starts.max()!, example: reports[longest.report].id, trend: trend)
    }
}

/// The quantile by nearest rank, without interpolation.
package func quantile(_ part: Double, of sorted: [Duration]) -> Duration {
    guard !sorted.isEmpty else { return .zero }
    let rank = Int((part * Double(sorted.count)).rounded(.up))
    return sorted[min(max(rank, 1), sorted.count) - 1]
}
