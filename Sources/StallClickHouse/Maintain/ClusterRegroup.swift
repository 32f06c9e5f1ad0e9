// New rules for the reports of a cluster, a day at a time: the day's reports are fetched into a store in memory, grouped there
// as those of a file are, and copied back under the keys that they had.

package import StallArchive
package import StallModel
internal import StallStore

/// Decides the groups of all reports of a cluster.
package struct ClusterRegroup {
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime

    package init(_ cluster: ClickHouseCluster, clock: @escaping () -> UnixTime = UnixTime.now) {
        (self.cluster, self.clock) = (cluster, clock)
    }

    /// What is cut off is done again from its beginning; until its end, reports are grouped by both sets of rules.
    ///
    /// - Returns: What moved, most reports first.
    package func run(_ grouper: any ReportGrouper) throws -> [RegroupedReports] {
        guard let known = try GroupingRow(cluster.server) else { return [] }
        let rollUps = RollUpDays(cluster)
        let days = try rollUps.withReports()
        try rollUps.mark(days, at: clock())
        var moved: [Move: Int] = [:]
        for day in days.sorted() {
            for move in try regroup(day, known, grouper) {
                moved[Move(before: move.before, after: move.after), default: 0] += move.count
            }
        }
        for shard in cluster.shards {
            try shard.execute(
                """
                insert into grouping (id, rules_hash, pruned_before_us, version) values
                    (1, \(grouper.rulesHash), \(known.prunedBefore?.microseconds ?? 0),
                        \(clock().microseconds))
                """)
        }
        try rollUps.renew(days, at: clock())
        return moved.map { RegroupedReports(before: $0.before, after: $0.after, count: $1) }
            .inOrder
    }

    private struct Move: Hashable {
        var before: ReportGroup?
        var after: ReportGroup
    }

    private func regroup(
        _ day: Int64, _ known: GroupingRow, _ grouper: any ReportGrouper
    ) throws -> [RegroupedReports] {
        var filter = ReportFilter()
        filter.since = UnixTime(microseconds: day * Int64.microsecondsOfDay)
        filter.until = UnixTime(microseconds: (day + 1) * Int64.microsecondsOfDay)
        return try regroup(ReportConditions(filter), known, grouper).moved
    }

    /// Decides the groups again of reports that were grouped before names of these places arrived.
    ///
    /// - Returns: The days whose totals are to be added up again.
    func run(
        ofPlaces places: [Int64], _ grouper: any ReportGrouper
    ) throws -> Set<Int64> {
        guard !places.isEmpty, let known = try GroupingRow(cluster.server) else { return [] }
        var days: Set<Int64> = []
        for part in places.sorted().parts() {
            var rows = try cluster.server.rows(
                "select distinct hash from stack where hasAny(location, \(Self.array(part)))",
                columnCount: 1)
            var stacks: [Int64] = []
            while try rows.step() { stacks.append(try rows.integer(at: 0)) }
            for part in stacks.sorted().parts() {
                var conditions = ReportConditions(ReportFilter())
                conditions.add("is_unnamed = 1 and hasAny(stack, \(Self.array(part)))")
                days.formUnion(try regroup(conditions, known, grouper).days)
            }
        }
        return days
    }

    /// Of one type, whatever their signs: an array of literals is of none then.
    private static func array(_ numbers: [Int64]) -> ClickHouseQuery {
        let text = numbers.map(String.init).joined(separator: ",")
        return "arrayMap(x -> toInt64(x), splitByChar(',', \(text)))"
    }

    private func regroup(
        _ conditions: ReportConditions, _ known: GroupingRow, _ grouper: any ReportGrouper
    ) throws -> (moved: [RegroupedReports], days: Set<Int64>) {
        let reports = try ReportExcerpt(
            cluster.server, GroupingRow(rulesHash: known.rulesHash))
        guard try reports.fetch(conditions, withStacks: true) > 0 else { return ([], []) }
        let connection = reports.excerpt.connection
        let moved = try regroupReports(connection, grouper)
        let copied = try StoreCopy(connection, to: cluster, clock: clock).run(isOfNewRules: true)
        return (moved, copied.days)
    }
}
