// A cluster as a store for queries. For questions about many stalls the cluster adds up; for those about few, the
// reports are fetched. Either way a store in memory of the usual schema gives the answer (Excerpt.swift), so that a
// cluster and a file answer alike.

internal import StallArchive
package import StallModel
package import StallQuery
internal import StallStore

/// A store on a cluster of ClickHouse. Nothing here writes.
///
/// **Thread safety:** one thread at a time.
package final class ClusterStore: QueryableStore {
    let server: ClickHouseServer
    let state: ClusterState
    /// Reports that were asked for before: the numbers of their stacks stay valid.
    private var kept: ReportExcerpt?
    /// The key that `reportID` looks up.
    var sourceDays = RowNumbers<SourceDay>()

    package var path: String { server.name }
    package var role: StoreRole { .central }

    /// The shards that do not answer: what this store says lacks their reports.
    package var missingShards: [String] { state.missingShards }
    var grouping: GroupingRow? { state.grouping }

    /// Opens the store at an address.
    ///
    /// - question: The first question, where that is known: it is sent with the queries of opening.
    package static func open(
        _ address: String, expecting question: AggregateQuestion? = nil
    ) throws -> ClusterStore {
        try ClusterStore(ClickHouseServer(ClickHouseAddress(address)), expecting: question)
    }

    package init(_ server: ClickHouseServer, expecting question: AggregateQuestion? = nil) throws {
        var server = server
        // Most questions begin with the days.
        var statements = [ClusterState.question, KnownDays.question]
        if let question {
            statements += TotalsQuestion.firstStatements(server, question)
            statements += Self.statements(server, after: question)
        }
        server.ask(ahead: statements)
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

    // MARK: Totals

    package func aggregates(
        _ question: AggregateQuestion, grouper: any ReportGrouper
    ) throws -> AggregateAnswer {
        guard let grouping else { return AggregateAnswer() }
        return try TotalsQuestion(server, question, grouping)
            .answer(grouper, askingAhead: Self.statements(server, after: question))
    }

    /// A ranking of groups next needs how long their loops were watched, and how many stalls have no report.
    private static func statements(
        _ server: ClickHouseServer, after question: AggregateQuestion
    ) -> [ClickHouseQuery] {
        let filter = question.filter
        guard question.largest != nil, filter.since == nil, filter.until == nil else { return [] }
        return exposureQuestions(server, filter, withSuppressions: filter.causes == nil)
    }

    package func dailyTotals(_ filter: ReportFilter) throws -> DailyTotals? {
        guard let grouping, filter.states == nil else { return nil }
        let question = AggregateQuestion(filter, by: .app, withDays: true, withExamples: false)
        return try TotalsQuestion(server, question, grouping).dailyTotals()
    }

    /// Steps that the bounds are multiples of are added up by the cluster, and parts of steps here: hours and days of a time
    /// zone begin at such a step.
    package func totals(
        _ filter: ReportFilter, between bounds: [UnixTime]
    ) throws -> [StallTotals]? {
        guard let first = bounds.first?.microseconds, let last = bounds.last?.microseconds,
            let step = Self.step(of: bounds)
        else { return nil }
        var conditions = ReportConditions(ofStalls(filter))
        conditions.add(from: first)
        conditions.add(before: last)
        var rows = try server.rows(
            """
            select intDiv(start_us - \(first), \(step)) as slot, count(), \(sum: "duration_ns"),
                max(duration_ns), sum(pow(duration_ns / 1000000000, 2))
            from \(conditions.reports(server)) group by slot
            """, columnCount: 5)
        var parts = Array(repeating: StallTotals(), count: bounds.count - 1)
        while try rows.step() {
            let slot: Int64 = try rows.integer()
            guard 0...(last - first) / step ~= slot,
                let part = bounds.part(of: UnixTime(microseconds: first + slot * step))
            else { throw rows.bad(0, "a time that was asked for") }
            var totals = StallTotals()
            totals.count = try rows.integer()
            totals.total = .nanoseconds(try rows.integer())
            totals.longest = .nanoseconds(try rows.integer())
            totals.squares = try rows.double()
            parts[part].add(totals)
        }
        return parts
    }

    /// Nil for bounds that no whole seconds are between.
    private static func step(of bounds: [UnixTime]) -> Int64? {
        var step: Int64 = 0
        for (begin, end) in zip(bounds, bounds.dropFirst()) {
            let (length, overflow) = end.microseconds.subtractingReportingOverflow(
                begin.microseconds)
            guard !overflow, length > 0 else { return nil }
            var (larger, smaller) = (max(step, length), min(step, length))
            while smaller > 0 { (larger, smaller) = (smaller, larger % smaller) }
            step = larger
        }
        return step >= 1_000_000 ? step : nil
    }

    package func rulesHash() throws -> Int64? { grouping?.rulesHash }

    package func rulesText() throws -> String? {
        try grouping.flatMap { try RulesTexts.text(of: $0.rulesHash, on: server) }
    }

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
            "select count(), min(start_us), max(start_us) from \(conditions.reports(server))",
            columnCount: 3)
        guard try rows.step(), try rows.integer(as: Int64.self) > 0 else { return nil }
        return (
            UnixTime(microseconds: try rows.integer()),
            UnixTime(microseconds: try rows.integer())
        )
    }

    // MARK: Reports

    package func summaries(
        _ filter: ReportFilter, ofGroups signatures: Set<Int64>?
    ) throws -> ReportSelection {
        var conditions = ReportConditions(filter)
        if let signatures { conditions.add(groups: signatures, orNone: true, server) }
        var rows = try SummaryRows(server, keptReports())
        try rows.read(conditions)
        return try rows.selection()
    }

    package func newest(
        _ filter: ReportFilter, signature: Int64?, count: Int
    ) throws -> ReportSelection {
        var rows = try SummaryRows(server, keptReports())
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
            conditions.add(ofKey: "day >= \(span.first!) and day <= \(span.last!)")
            if let signature { conditions.add(groups: [signature], orNone: false, server) }
            missing -= try newest(conditions, missing, &rows)
            rest.removeLast(span.count)
            spanLength *= 4
        }
        var selection = try rows.selection()
        selection.reports.sort { left, right in
            left.start == right.start
                ? left.id.words > right.id.words : left.start > right.start
        }
        return selection
    }

    /// Reads the newest reports that conditions select.
    ///
    /// - Returns: How many there are.
    private func newest(
        _ conditions: ReportConditions, _ count: Int, _ rows: inout SummaryRows
    ) throws -> Int {
        let order = Self.newest(count)
        guard count <= Self.keyLimit else { return try rows.read(few: conditions, order) }
        // The reports' keys are read first: that reads small columns of many reports, and the others of these alone. It
        // finds all revisions, of which those are left out again that are not the latest.
        var keys = try server.rows(
            "select app, day, id from \(conditions.revisions(server)) \(order)", columnCount: 3)
        var (apps, days, ids): (Set<String>, Set<Int64>, Set<UniqueID>) = ([], [], [])
        var keyCount = 0
        while try keys.step() {
            keyCount += 1
            apps.insert(try keys.text())
            days.insert(try keys.day())
            ids.insert(try keys.uniqueID())
        }
        guard keyCount > 0 else { return 0 }
        var narrow = conditions
        narrow.add(ofKey: "app in \(list: apps.sorted()) and day in \(list: days.sorted())")
        narrow.add(ofIDs: ids)
        guard keyCount == count else { return try rows.read(few: narrow) }
        var found = rows
        guard try found.read(few: narrow) == count else {
            return try rows.read(few: conditions, order)
        }
        rows = found
        return count
    }

    /// The most ids that are put into a statement.
    private static let keyLimit = 20_000

    package func reports(idPrefix: String) throws -> [StallReport] {
        let reports = try keptReports()
        if let ids = UniqueID.bounds(ofPrefix: idPrefix) {
            // An id holds when it was made, which is when the stall began unless another program made it.
            let first = ids.first.made.microseconds.day
            let last = ids.last.made.microseconds.day
            func fetch(_ days: ClickHouseQuery?) throws -> Int {
                var conditions = ReportConditions(ReportFilter())
                if let days { conditions.add(ofKey: days) }
                conditions.add(ofKey: "id >= \(ids.first) and id <= \(ids.last)")
                return try reports.fetch(conditions, "order by id limit 100", withStacks: true)
            }
            let isShortTime = last - first < 32
            let count = isShortTime ? try fetch("day >= \(first) and day <= \(last)") : 0
            if count == 0 { _ = try fetch(nil) }
        }
        return try reports.excerpt.store.reports(idPrefix: idPrefix)
    }

    package func images(ofRun run: UniqueID) throws -> [Image] {
        let reports = try keptReports()
        try reports.excerpt.fill { try reports.fetchImages(ofRun: run) }
        return try reports.excerpt.store.images(ofRun: run)
    }

    package func loops() throws -> [(run: ProcessRun, name: String)] {
        let reports = try keptReports()
        try reports.excerpt.fill { try reports.fetchLoops(nil) }
        return try reports.excerpt.store.loops()
    }
}
