// Rows into summaries of reports, for ranking and lists: millions per second.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads reports without their frames, on one snapshot of a store.
struct SummaryReader {
    /// The columns that `all` reads, in its order.
    static let columns = """
        report.loop, report.duration_ns, report.samples, report.id, report.start_us,
        \(StallOutcome.columns), report.verdict, report.cause, report.delayed_ns, report.source
        """

    /// Every process of the store, whether it has reports or not.
    private(set) var runs: [ProcessRun] = []
    private(set) var loops: [Int64: (run: Int, name: String)] = [:]
    private let watched: WatchedLoops

    init(_ connection: Connection) throws {
        watched = try WatchedLoops(connection)
        var indexes: [UniqueID: Int] = [:]
        var reader = ProcessRunReader()
        let rows = try connection.prepare(
            """
            select loop.id, loop.name, \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run
            """)
        while try rows.step() {
            let (loop, name) = (try rows.integer(), rows.text())
            let run = try reader.run(rows)
            let index = indexes[run.id] ?? runs.count
            if index == runs.count { runs.append(run) }
            indexes[run.id] = index
            loops[loop] = (index, name)
        }
    }

    /// The reports of all rows.
    func all(_ rows: Statement) throws -> [ReportSummary] {
        var reports: [ReportSummary] = []
        while try rows.step() {
            let loopRow = try rows.integer()
            guard let loop = loops[loopRow] else { throw rows.damage("a report of no loop") }
            let duration = try rows.duration_ns()
            let stacks = try Self.stacks(rows, in: duration)
            var report = ReportSummary(
                id: try rows.uniqueID(), run: loop.run, loop: loop.name,
                start: try rows.time(),
                duration: .nanoseconds(duration), outcome: try rows.outcome(),
                verdict: try rows.value(), cause: try rows.causeClass(), stacks: stacks)
            report.delayed = try rows.delayed(in: duration)
            report.isWatched = watched.contains(source: try rows.integer(), loop: loopRow)
            reports.append(report)
        }
        return reports
    }

    /// The stacks of a report's samples that are not late.
    static func stacks(_ rows: Statement, in duration_ns: Int64) throws -> [WeightedStack] {
        let samples = try rows.samples()
        return zip(samples, samples.weights(in: duration_ns)).compactMap { sample, weight in
            guard let stack = sample.stack, !sample.isLate else { return nil }
            return WeightedStack(stack: stack, weight: .nanoseconds(weight))
        }
    }

    /// The newest reports of a table that meet a condition, the newest first.
    func newest(
        _ connection: Connection, from table: String, _ condition: Condition, _ count: Int
    ) throws -> [ReportSummary] {
        let rows = try connection.prepare(
            """
            select \(Self.columns) from \(table) where \(condition.sql)
            order by report.start_us desc, report.id desc limit \(count)
            """)
        try condition.bind(to: rows)
        return try all(rows)
    }
}
