// The input of one question for totals as a store in memory: buckets that the cluster has added up, and single reports
// where a time begins or ends within a day. `ReportStore` then answers as it does for a file.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Buckets and reports without stacks.
struct TotalsExcerpt {
    let excerpt: Excerpt
    private let addCohort, addCell, addHostCell, addHost, addReport, addDay, addWatched: Statement
    private var cohorts = RowNumbers<CellKey>()
    private var hosts = RowNumbers<String>()
    private var reportLoops = RowNumbers<LightReport.Loop>()
    private var reportRuns = RowNumbers<LightReport.Build>()
    private var reportCount: Int64 = 0

    /// Sources that reports are put under: of loops whose watched time is not recorded, of the others, and of reports that
    /// are there only to be named.
    private static let (unwatched, watched, named) = (Int64(1), Int64(2), Int64(3))

    init(of name: String, _ grouping: GroupingRow) throws {
        excerpt = try Excerpt(of: name, grouping)
        let connection = excerpt.connection
        addCohort = try connection.prepare(
            """
            insert into cohort (id, app, version, build_id, loop, verdict, cause, is_watched)
            values (?, ?, ?, null, ?, ?, ?, ?)
            """)
        func cell(_ table: String, _ axis: String) throws -> Statement {
            try connection.prepare(
                """
                insert into \(table) (day_count, first_day, cohort, \(axis), report_count, total_ns,
                    cpu_ns, min_ns, max_ns, max_source, max_seq, first_us, last_us, histogram,
                    delayed_ns)
                values (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        }
        addCell = try cell("rollup", "signature")
        addHostCell = try cell("host_rollup", "host")
        addHost = try connection.prepare("insert into host (id, name) values (?, ?)")
        addReport = try connection.prepare(
            """
            insert into report (source, seq, revision, id, loop, mode, phase, state, verdict, start_us,
                duration_ns, cpu_ns, detection_delay_ns, samples, cause, signature, delayed_ns)
            values (?, ?, 0, ?, ?, 1, 0, 1, ?, ?, ?, 0, 0, x'', ?, ?, ?)
            """)
        addDay = try connection.prepare(
            """
            insert into report_day (day, source, first_seq, last_seq) values (?, ?, ?, ?)
            on conflict do update set last_seq = excluded.last_seq
            """)
        addWatched = try connection.prepare("insert into watched_loop (source, loop) values (?, ?)")
        for source in [Self.unwatched, Self.watched, Self.named] {
            _ = try excerpt.source(UniqueID((0, UInt64(source))))
        }
        _ = try excerpt.label("")
    }

    /// Adds a bucket.
    ///
    /// - Parameters:
    ///   - dayCount: 1 or 32, as the question reads them.
    ///   - isExampleThere: Whether the longest report was not pruned.
    mutating func add(
        _ key: CellKey, _ cell: Cell, dayCount: Int64, day: Int64, axis: CellAxis,
        isExampleThere: Bool
    ) throws {
        var seq: Int64 = 0
        if isExampleThere, let longest = cell.longest {
            reportCount += 1
            seq = reportCount
            try addReport.run(
                Self.named, seq, longest.id, Int64(0), Int64(0), Int64(0), Int64(0), Int64?.none,
                Int64?.none, Int64?.none)
        }
        let columnOfAxis =
            axis == .host ? try host(key.host) : excerpt.signatures[key.signature] ?? 0
        try (axis == .host ? addHostCell : addCell).run(
            dayCount, day, try cohort(key), columnOfAxis, cell.count, cell.total_ns, cell.min_ns,
            cell.max_ns, Self.named, seq, cell.first_us, cell.last_us, cell.histogram.encoded,
            cell.delayed_ns)
    }

    /// Adds a report that is counted on its own.
    mutating func add(_ report: LightReport) throws {
        let (run, isNewRun) = reportRuns.number(of: report.loop.build)
        if isNewRun {
            let build = report.loop.build
            _ = try excerpt.run(
                ProcessRun(
                    id: UniqueID((1, UInt64(run))), app: build.app, version: build.version,
                    buildID: nil, host: build.host, pid: 0, bootID: "", startTicks: 0,
                    started: UnixTime(microseconds: 0)))
        }
        let (loop, isNewLoop) = reportLoops.number(of: report.loop)
        let source = report.loop.isWatched ? Self.watched : Self.unwatched
        if isNewLoop {
            _ = try excerpt.loop(loop, run: run, name: report.loop.name, threshold_ns: loop)
            if report.loop.isWatched { try addWatched.run(source, loop) }
        }
        reportCount += 1
        try addReport.run(
            source, reportCount, report.id, loop, report.verdict, report.start_us,
            report.duration_ns, report.cause,
            // Groups are there only where they matter; that it has one does everywhere.
            report.signature == 0 ? nil : excerpt.signatures[report.signature] ?? 0,
            report.delayed_ns)
        try addDay.run(report.start_us.day, source, reportCount, reportCount)
    }

    private mutating func cohort(_ key: CellKey) throws -> Int64 {
        var dimension = key
        (dimension.signature, dimension.host, dimension.day) = (0, "", 0)
        let (id, isNew) = cohorts.number(of: dimension)
        if isNew {
            try addCohort.run(
                id, key.app, key.version, key.loop, Int64(key.verdict),
                key.cause < 0 ? nil : Int64(key.cause), key.isWatched)
        }
        return id
    }

    private mutating func host(_ name: String) throws -> Int64 {
        let (id, isNew) = hosts.number(of: name)
        if isNew { try addHost.run(id, name) }
        return id
    }
}

/// A report as totals count it.
struct LightReport {
    struct Build: Hashable {
        var app, version, host: String
    }
    struct Loop: Hashable {
        var build: Build
        var name: String
        var isWatched: Bool
    }

    var id: UniqueID
    var loop: Loop
    var verdict: Int64
    var cause: Int64?
    var start_us: Int64
    var duration_ns: Int64
    /// The part of it that was not the thread's own.
    var delayed_ns: Int64
    /// The key of its group; 0 for none.
    var signature: Int64

    /// The reports that meet conditions.
    static func all(
        _ server: ClickHouseServer, _ conditions: ReportConditions,
        _ body: (LightReport) throws -> Void
    ) throws {
        var rows = try server.rows(
            """
            select app, version, host, id, loop_name, \(server.isOfWatchedLoop), verdict, cause,
                start_us, duration_ns, delayed_ns, signature
            from \(conditions.reports(server)) order by source, seq
            """, columnCount: 12)
        while try rows.step() {
            let build = Build(
                app: try rows.text(), version: try rows.text(), host: try rows.text())
            let id = try rows.uniqueID()
            let loop = Loop(
                build: build, name: try rows.text(),
                isWatched: try rows.integer(as: UInt8.self) != 0)
            let (verdict, cause): (Int64, Int64) = (try rows.integer(), try rows.integer())
            try body(
                LightReport(
                    id: id, loop: loop, verdict: verdict, cause: cause < 0 ? nil : cause,
                    start_us: try rows.integer(), duration_ns: try rows.integer(),
                    delayed_ns: try rows.integer(), signature: try rows.integer()))
        }
    }
}
