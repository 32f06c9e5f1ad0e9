// A cluster as a store that is asked questions. Questions about many stalls are added up by the cluster; of those about few, the
// reports are fetched. Either way a store in memory of the usual schema gives the answer (Excerpt.swift), so that a cluster and
// a file answer alike.

internal import StallArchive
package import StallModel
internal import StallStore

/// A store on a cluster of ClickHouse. Nothing here writes.
///
/// **Thread safety:** one thread at a time.
package final class ClusterStore: QueryableStore {
    let server: ClickHouseServer
    let state: ClusterState
    /// Reports that were asked for before: the numbers of their stacks stay valid.
    private var kept: ReportExcerpt?

    package var path: String { server.name }
    package var role: StoreRole { .central }

    /// The shards that do not answer: what this store says lacks their reports.
    package var missingShards: [String] { state.missingShards }
    var grouping: GroupingRow? { state.grouping }

    /// Opens the store at an address.
    package static func open(_ address: String) throws -> ClusterStore {
        try ClusterStore(ClickHouseServer(ClickHouseAddress(address)))
    }

    package init(_ server: ClickHouseServer) throws {
        var server = server
        // Most questions begin with the days.
        server.ask(ahead: [ClusterState.question, KnownDays.question])
        state = try ClusterState(&server)
        self.server = server
    }

    /// The reports that were fetched so far.
    func keptReports() throws -> ReportExcerpt {
        if let kept { return kept }
        let new = try ReportExcerpt(server, grouping)
        kept = new
        return new
    }

    /// A store in memory with the reports that a filter selects.
    private func fetched(
        _ filter: ReportFilter, withStacks: Bool, stallsOnly: Bool = false
    ) throws -> ReportStore {
        var filter = filter
        if stallsOnly { filter.verdicts = filter.verdicts ?? [.stalled] }
        let reports = try keptReports()
        try reports.fetch(ReportConditions(filter), withStacks: withStacks)
        return reports.excerpt.store
    }

    // MARK: Totals

    package func aggregates(
        _ question: AggregateQuestion, grouper: any ReportGrouper
    ) throws -> AggregateAnswer {
        guard let grouping else { return AggregateAnswer() }
        // Who ranks groups asks next how long their loops were watched, and what was not reported of them.
        var next: [ClickHouseQuery] = []
        let filter = question.filter
        if question.largest != nil {
            next.append(exposureQuestion(filter, false, of: .whole))
            if filter.since == nil, filter.until == nil, filter.causes == nil {
                next.append(Self.suppressionQuestion)
            }
        }
        return try TotalsQuestion(server, question, grouping).answer(grouper, askingAhead: next)
    }

    package func dailyTotals(_ filter: ReportFilter) throws -> DailyTotals? {
        guard let grouping else { return nil }
        let question = AggregateQuestion(filter, by: .app, withDays: true, withExamples: false)
        return try TotalsQuestion(server, question, grouping).dailyTotals()
    }

    package func rulesHash() throws -> Int64? { grouping?.rulesHash }

    package func prunedBefore() throws -> UnixTime? {
        grouping?.prunedBefore
    }

    package func groups() throws -> [ReportGroup] {
        try Array(GroupSource(server: server).groups().values)
    }

    package func timeSpan(_ filter: ReportFilter) throws -> (first: UnixTime, last: UnixTime)? {
        var filter = filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        let conditions = ReportConditions(filter)
        var rows = try server.rows(
            "select count(), min(start_us), max(start_us) from report final where \(conditions.sql)",
            columnCount: 3)
        guard try rows.step(), try rows.integer(at: 0, as: Int64.self) > 0 else { return nil }
        return (
            UnixTime(microseconds: try rows.integer(at: 1)),
            UnixTime(microseconds: try rows.integer(at: 2))
        )
    }

    // MARK: Reports

    package func summaries(
        _ filter: ReportFilter, ofGroups signatures: Set<Int64>?
    ) throws -> ReportSelection {
        var conditions = ReportConditions(filter)
        if let signatures {
            conditions.add(
                """
                (signature = 0 or signature in
                    (select key from \(server.table("signature")) where hash in \(list: signatures.sorted())))
                """)
        }
        let reports = try keptReports()
        try reports.fetch(conditions, withStacks: false)
        return try reports.excerpt.store.summaries(filter, ofGroups: signatures)
    }

    package func newest(
        _ filter: ReportFilter, signature: Int64?, count: Int
    ) throws -> ReportSelection {
        let reports = try keptReports()
        // Day by day from the last one, in ever longer spans: to sort all reports of a cluster takes seconds.
        var rest = try KnownDays(server).all[...]
        if let since = filter.since { rest = rest.drop { $0 < since.microseconds.day } }
        if let until = filter.until?.microseconds.day {
            while let last = rest.last, last > until { rest.removeLast() }
        }
        var (missing, spanLength) = (count, 1)
        while missing > 0, !rest.isEmpty {
            let span = rest.suffix(spanLength)
            var conditions = ReportConditions(filter)
            conditions.add("day >= \(span.first!) and day <= \(span.last!)")
            if let signature {
                conditions.add(
                    """
                    signature in
                        (select key from \(server.table("signature")) where hash = \(signature))
                    """)
            }
            missing -= try reports.fetch(
                conditions, "order by start_us desc, id desc limit \(missing)", withStacks: false)
            rest.removeLast(span.count)
            spanLength *= 4
        }
        return try reports.excerpt.store.newest(filter, signature: signature, count: count)
    }

    package func reports(_ filter: ReportFilter, limit: Int?) throws -> [StallReport] {
        let reports = try keptReports()
        let rest: ClickHouseQuery =
            limit.map { "order by start_us desc, id desc limit \(max(0, $0))" } ?? ""
        try reports.fetch(ReportConditions(filter), rest, withStacks: true)
        return try reports.excerpt.store.reports(filter, limit: limit)
    }

    package func reports(idPrefix: String) throws -> [StallReport] {
        let reports = try keptReports()
        if let ids = UniqueID.bounds(ofPrefix: idPrefix) {
            let between: ClickHouseQuery =
                "id >= \(ids.first) and id <= \(ids.last)"
            // An id tells when it was made, which is when the stall began unless another program made it.
            let first = ids.first.made.microseconds.day
            let last = ids.last.made.microseconds.day
            var keys: [(app: String, day: Int64)] = []
            func find(_ condition: ClickHouseQuery) throws {
                var rows = try server.rows(
                    "select distinct app, day from report where \(condition) limit 100",
                    columnCount: 2)
                while try rows.step() {
                    keys.append((try rows.text(at: 0), try rows.integer(at: 1)))
                }
            }
            if last - first < 32 { try find("day >= \(first) and day <= \(last) and \(between)") }
            if keys.isEmpty { try find(between) }
            if !keys.isEmpty {
                var conditions = ReportConditions(ReportFilter())
                conditions.add("app in \(list: Set(keys.map(\.app)).sorted())")
                conditions.add("day in \(list: Set(keys.map(\.day)).sorted())")
                conditions.add(between)
                try reports.fetch(conditions, "order by id limit 100", withStacks: true)
            }
        }
        return try reports.excerpt.store.reports(idPrefix: idPrefix)
    }

    package func reportID(source: Int64, seq: Int64) throws -> UniqueID? {
        try keptReports().excerpt.store.reportID(source: source, seq: seq)
    }

    package func origins(_ filter: ReportFilter) throws -> [UniqueID: ReportOrigin] {
        var rows = try server.rows(
            """
            select id, source, seq, revision from report final
            where \(ReportConditions(filter).sql)
            """, columnCount: 4)
        var origins: [UniqueID: ReportOrigin] = [:]
        while try rows.step() {
            origins[try rows.uniqueID(at: 0)] = ReportOrigin(
                store: try rows.uniqueID(at: 1), seq: try rows.integer(at: 2),
                revision: try rows.integer(at: 3))
        }
        return origins
    }

    package func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void
    ) throws {
        try fetched(filter, withStacks: true).forEachReport(filter, in: order, limit: limit, body)
    }

    package func forEachOutline(
        _ filter: ReportFilter, limit: Int?, withThreads: Bool,
        _ body: (ReportOutline, any OutlineLookup) throws -> Void
    ) throws {
        try fetched(filter, withStacks: true)
            .forEachOutline(filter, limit: limit, withThreads: withThreads, body)
    }

    package func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void
    ) throws {
        try fetched(filter, withStacks: true, stallsOnly: true)
            .forEachStall(filter, in: order, limit: limit, body)
    }

    // MARK: Stacks

    package func stackSets(_ filter: ReportFilter) throws -> StackSets {
        try fetched(filter, withStacks: false, stallsOnly: true).stackSets(filter)
    }

    package func stallTable(_ filter: ReportFilter, expected: Int) throws -> StallTable {
        try fetched(filter, withStacks: false).stallTable(filter, expected: expected)
    }

    package func stackTimes(_ filter: ReportFilter) throws -> [StackTime] {
        try fetched(filter, withStacks: false, stallsOnly: true).stackTimes(filter)
    }

    package func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws -> StackFunctions {
        let reports = try keptReports()
        try reports.fetchStacks(numbers: stacks)
        return try reports.excerpt.store.functions(ofStacks: stacks, number)
    }

    package func frames(ofStacks stacks: Set<Int64>) throws -> [Int64: [Frame]] {
        let reports = try keptReports()
        try reports.fetchStacks(numbers: stacks)
        return try reports.excerpt.store.frames(ofStacks: stacks)
    }

    package func images(ofRun run: UniqueID) throws -> [Image] {
        let reports = try keptReports()
        try reports.excerpt.fill { try reports.fetchImages(ofRuns: [run]) }
        return try reports.excerpt.store.images(ofRun: run)
    }

    package func loops() throws -> [(run: ProcessRun, name: String)] {
        let reports = try keptReports()
        try reports.excerpt.fill { try reports.fetchLoops(nil) }
        return try reports.excerpt.store.loops()
    }
}
