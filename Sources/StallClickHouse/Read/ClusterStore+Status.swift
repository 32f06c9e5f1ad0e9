// A cluster in numbers.

import StallModel
package import StallQuery
internal import StallStore

extension ClusterStore {
    /// The slowest of these takes most of the time: all are sent at once.
    private static let questions: [ClickHouseQuery] = [
        sources, runs, stacks, apps, hosts, revisions, losses,
    ]
    private static let sources: ClickHouseQuery = "select uniqExact(store) from source"
    private static let runs: ClickHouseQuery = "select uniqExact(uuid) from process_run"
    private static let stacks: ClickHouseQuery = "select uniqExact(hash) from stack"
    private static let apps: ClickHouseQuery = "select distinct app from process_run order by app"
    private static let hosts: ClickHouseQuery =
        "select distinct host from process_run order by host"
    private static let revisions: ClickHouseQuery = """
        select day, verdict, state, count(), min(start_us), max(start_us) from report
        group by day, verdict, state
        """
    /// One process is in several sources where stores were copied, and each has its own counts.
    private static let losses: ClickHouseQuery = """
        select reason, \(sum: "most") from
            (select run, reason, max(report_count) as most from loss final group by run, reason)
        group by reason
        """

    package func status() throws -> StoreStatus {
        let now = UnixTime.now()
        let cells = CellSource(
            server, try KnownDays(server), ReportFilter(), Int64.min..<Int64.max)
        server.ask(
            ahead: Self.questions + [
                Self.lostByLoop(cells), Self.cellCounts(cells), Self.countsByDay(cells),
                WatchedHost.question(at: now),
            ],
            keepingOthers: true)
        var status = StoreStatus(
            path: path, role: role, schemaVersion: state.schemaVersion, bytes: try bytes())
        status.sourceCount = try count(Self.sources)
        status.runCount = try count(Self.runs)
        status.stackCount = try count(Self.stacks)
        status.apps = try list(Self.apps)
        status.hosts = try list(Self.hosts)
        status.watchedHosts = try WatchedHost.read(server, at: now)
        try addReports(cells, to: &status)
        try addRollUps(cells, to: &status)
        var rows = try server.rows(Self.losses, columnCount: 2)
        while try rows.step() {
            // A reason that this program does not know is for `check` to report.
            let (reason, count): (UInt8, Int) = (try rows.integer(), try rows.integer())
            if let reason = LossReason(rawValue: reason) { status.losses[reason] = count }
        }
        return status
    }

    private static func countsByDay(_ cells: CellSource) -> ClickHouseQuery {
        var cells = cells
        cells.axis = .none
        return "select day, sum(report_count) from \(cells.rolledUp) group by day"
    }

    /// To take the latest revision of each of ten million reports takes a second. Where a day has as many rows as its roll-ups
    /// count, each is the only one of its report.
    private func addReports(_ cells: CellSource, to status: inout StoreStatus) throws {
        var counts: [Int64: Int64] = [:]
        var rows = try server.rows(Self.countsByDay(cells), columnCount: 2)
        while try rows.step() {
            let day: Int64 = try rows.integer()
            counts[day] = try rows.integer()
        }
        rows = try server.rows(Self.revisions, columnCount: 6)
        var groups: [Int64: [ReportCount]] = [:]
        while try rows.step() {
            let day: Int64 = try rows.integer()
            groups[day, default: []].append(try ReportCount(rows))
        }
        var rest: [Int64] = []
        for (day, groups) in groups {
            if groups.reduce(0, { $0.addingSaturated(Int64($1.count)) }) == counts[day] {
                for group in groups { group.add(to: &status) }
            } else {
                rest.append(day)
            }
        }
        guard !rest.isEmpty else { return }
        var conditions = ReportConditions(ReportFilter())
        conditions.add(ofKey: "day in \(list: rest.sorted())")
        rows = try server.rows(
            """
            select verdict, state, count(), min(start_us), max(start_us)
            from \(conditions.reports(server)) group by verdict, state
            """, columnCount: 5)
        while try rows.step() { try ReportCount(rows).add(to: &status) }
    }

    private static func lostByLoop(_ cells: CellSource) -> ClickHouseQuery {
        var cells = cells
        cells.axis = .none
        return """
            select loop_name, verdict, is_watched, sum(report_count), \(sum: "total_ns")
            from \(cells.rolledUp) group by loop_name, verdict, is_watched
            """
    }

    private static func cellCounts(_ cells: CellSource) -> ClickHouseQuery {
        """
        select uniqExact(day), uniqExact(
            day, app, version, build_id, loop_name, verdict, cause, is_watched, signature)
        from \(cells.rolledUp)
        """
    }

    private func addRollUps(_ cells: CellSource, to status: inout StoreStatus) throws {
        var rows = try server.rows(Self.lostByLoop(cells), columnCount: 5)
        while try rows.step() {
            status.rollUpReportCount = status.rollUpReportCount.addingSaturated(
                try rows.integer(at: 3))
            guard try rows.integer(at: 1, as: UInt8.self) == StallVerdict.stalled.rawValue else {
                continue
            }
            let (loop, lost) = (try rows.text(at: 0), Duration.nanoseconds(try rows.integer(at: 4)))
            status.lostByLoop[loop, default: .zero] += lost
            if try rows.integer(at: 2, as: UInt8.self) != 0 {
                status.watchedLostByLoop[loop, default: .zero] += lost
            }
        }
        rows = try server.rows(Self.cellCounts(cells), columnCount: 2)
        guard try rows.step() else { return }
        (status.rollUpDayCount, status.rollUpCount) = (
            try rows.integer(at: 0), try rows.integer(at: 1)
        )
    }

    /// The bytes of its tables, on all shards.
    private func bytes() throws -> Int64 {
        let database = server.address.database
        guard let cluster = server.address.cluster else {
            return Int64(
                try count(
                    """
                    select toInt64(sum(bytes_on_disk)) from system.parts
                    where active and database = \(database)
                    """))
        }
        do {
            return Int64(
                try count(
                    """
                    select toInt64(sum(bytes_on_disk)) from cluster(\(cluster), system, parts)
                    where active and database = \(database)
                    """))
        } catch let error as ClickHouseError where error.code == ClickHouseCode.readOnly {
            // A user with read access only may not name other servers' tables in a query. Here all shards answer.
            return try ClickHouseCluster(server).byteCount()
        }
    }

    private func count(_ question: ClickHouseQuery) throws -> Int {
        var rows = try server.rows(question, columnCount: 1)
        return try rows.step() ? try rows.integer() : 0
    }

    private func list(_ question: ClickHouseQuery) throws -> [String] {
        var rows = try server.rows(question, columnCount: 1)
        var list: [String] = []
        while try rows.step() { list.append(try rows.text()) }
        return list
    }
}

/// Reports of one verdict and state.
private struct ReportCount {
    var verdict: StallVerdict
    var state: StallState
    var count: Int
    var first, last: UnixTime

    init(_ row: TabSeparatedRows) throws {
        (verdict, state) = (try row.verdict(), try row.state())
        count = try row.integer()
        first = UnixTime(microseconds: try row.integer())
        last = UnixTime(microseconds: try row.integer())
    }

    func add(to status: inout StoreStatus) {
        func add(to sum: inout Int) { sum = sum.addingSaturated(count) }
        add(to: &status.reportCount)
        add(to: &status.reportsByVerdict[verdict, default: 0])
        add(to: &status.reportsByState[state, default: 0])
        status.first = min(status.first ?? first, first)
        status.last = max(status.last ?? last, last)
    }
}
