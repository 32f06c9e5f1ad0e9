// New rules for the reports of a cluster, a day at a time: the day's reports are fetched into a store in memory, grouped there
// as those of a file are, and copied back under the keys that they had.

internal import StallArchive
package import StallIngest
package import StallModel
package import StallQuery
internal import StallStore

/// Decides the groups of all reports of a cluster.
package struct ClusterRegroup {
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime

    package init(_ cluster: ClickHouseCluster, clock: @escaping () -> UnixTime = UnixTime.now) {
        (self.cluster, self.clock) = (cluster, clock)
    }

    /// A run that was interrupted starts again from its beginning; until its end, reports are grouped by both sets of
    /// rules.
    ///
    /// - Returns: The reports that moved, by old and new group, most reports first.
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
        var moved: [RegroupedReports] = []
        try ReportSlices(
            server: cluster.server, conditions: ReportConditions(filter), order: .newestFirst,
            size: Self.sliceSize
        ).forEach { part in
            moved += try regroup(part, known, grouper).moved
            return true
        }
        return moved
    }

    /// Reports of a slice; with their stacks some hundred megabytes of a store in memory.
    private static let sliceSize = 200_000

    /// Decides the groups again of reports that were grouped before names of these locations arrived.
    ///
    /// - Returns: The days whose totals are to be added up again.
    func run(
        ofPlaces places: [Int64], _ grouper: any ReportGrouper
    ) throws -> Set<Int64> {
        guard !places.isEmpty, let known = try GroupingRow(cluster.server) else { return [] }
        var days: Set<Int64> = []
        // A store that is ingested again names all its locations again; reports that wait for a name are few, or none.
        let stacks = try unnamedStacks(showing: Set(places))
        for part in stacks.sorted().parts() {
            var conditions = ReportConditions(ReportFilter())
            conditions.add("is_unnamed = 1 and \(Self.any(of: "stack", in: part))")
            days.formUnion(try regroup(conditions, known, grouper).days)
        }
        return days
    }

    /// The stacks of reports that were grouped without the name of one of these locations.
    private func unnamedStacks(showing places: Set<Int64>) throws -> [Int64] {
        var rows = try cluster.server.rows(
            "select distinct arrayJoin(stack) as one from report where is_unnamed = 1",
            columnCount: 1)
        var unnamed: [Int64] = []
        while try rows.step() { unnamed.append(try rows.integer(at: 0)) }
        var stacks: [Int64] = []
        for part in unnamed.sorted().parts() {
            var rows = try cluster.server.rows(
                "select hash, location from stack where hash in \(list: part)", columnCount: 2)
            while try rows.step() {
                guard try rows.integers(at: 1).contains(where: places.contains) else { continue }
                stacks.append(try rows.integer(at: 0))
            }
        }
        return Array(Set(stacks))
    }

    /// A set of literals is made once. An array of them, for `hasAny`, would be made for each row: gigabytes of a block's.
    private static func any(of column: ClickHouseQuery, in hashes: [Int64]) -> ClickHouseQuery {
        "arrayExists(one -> one in \(list: hashes), \(column))"
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
