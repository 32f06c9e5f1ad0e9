// Rows into summaries of reports, for rankings and lists.

internal import StallModel
internal import StallQuery

/// Reads reports without their frames.
struct SummaryRows {
    private let reports: ReportExcerpt
    private var stalls: StallRows
    private var loops = RowNumbers<Int64>()
    private var found: [ReportSummary] = []

    init(_ server: ClickHouseServer, _ reports: ReportExcerpt) {
        self.reports = reports
        stalls = StallRows(server, reports)
    }

    /// Reads all reports that conditions select.
    mutating func read(_ conditions: ReportConditions) throws {
        var (all, loops, found) = (stalls, loops, found)
        (self.loops, self.found) = (RowNumbers(), [])
        try all.forEach(conditions, Self.columns(all.server), columnCount: Self.columnCount) {
            stalls, row in
            found.append(try Self.summary(&stalls, row, &loops))
        }
        (self.loops, self.found) = (loops, found)
    }

    /// Reads the reports that conditions select, which are few, at once.
    ///
    /// - Returns: How many there are.
    mutating func read(few conditions: ReportConditions, _ rest: ClickHouseQuery = "") throws -> Int
    {
        var rows = try stalls.server.rows(
            "select \(Self.columns(stalls.server)) from \(conditions.reports(stalls.server)) \(rest)",
            columnCount: Self.columnCount)
        let before = found.count
        while try rows.step() { found.append(try Self.summary(&stalls, rows, &loops)) }
        return found.count - before
    }

    /// The summaries that were read, with the processes that they are of.
    mutating func selection() throws -> ReportSelection {
        var runs = RunNumbers()
        let (loops, reports) = (loops.keys, reports)
        try reports.excerpt.fill { try reports.fetchLoops(Set(loops)) }
        let known = try loops.map { hash in
            let loop = try reports.loop(hash)
            return (run: runs.number(of: loop.run), name: loop.name)
        }
        for index in found.indices {
            let loop = known[found[index].run]
            (found[index].run, found[index].loop) = (loop.run, loop.name)
        }
        return ReportSelection(runs: runs.runs, reports: found)
    }

    private static func columns(_ server: ClickHouseServer) -> ClickHouseQuery {
        """
        duration_ns, id, loop, start_us, \(StallOutcome.clusterColumns), verdict, cause,
        \(server.isOfWatchedLoop), stack, samples, delayed_ns
        """
    }

    private static let columnCount = 12

    /// Its run is the number of its loop until all are there.
    private static func summary(
        _ stalls: inout StallRows, _ row: TabSeparatedRows, _ loops: inout RowNumbers<Int64>
    ) throws -> ReportSummary {
        let duration = try stalls.duration_ns(row)
        var report = ReportSummary(
            id: try row.uniqueID(), run: Int(loops.number(of: try row.integer()).0 - 1),
            loop: "", start: UnixTime(microseconds: try row.integer()),
            duration: .nanoseconds(duration), outcome: try row.outcome(),
            verdict: try row.verdict(), cause: try row.cause(), stacks: [])
        report.isWatched = try row.integer(as: UInt8.self) != 0
        report.stacks = try stalls.weightedStacks(row, in: duration)
        report.delayed = .nanoseconds(try stalls.delayed_ns(row, in: duration))
        return report
    }
}

/// Processes in order of first occurrence.
struct RunNumbers {
    private(set) var runs: [ProcessRun] = []
    private var numbers: [UniqueID: Int] = [:]

    mutating func number(of run: ProcessRun) -> Int {
        if let known = numbers[run.id] { return known }
        numbers[run.id] = runs.count
        runs.append(run)
        return runs.count - 1
    }
}

// Numbers that stand for facts of a report.
extension TabSeparatedRows {
    func phase() throws -> LoopPhase { try value(at: nil, "a phase") }
    func verdict(at column: Int? = nil) throws -> StallVerdict {
        try value(at: column, "a verdict")
    }
    func state(at column: Int? = nil) throws -> StallState { try value(at: column, "a state") }

    /// Nil for a number below zero.
    func cause(at place: Int? = nil) throws -> CauseClass? {
        let column = place ?? next()
        return try integer(at: column) < 0 ? nil : try value(at: column, "a cause")
    }

    func value<Value: RawRepresentable<UInt8>>(
        at place: Int?, _ noun: String
    ) throws -> Value {
        let column = place ?? next()
        guard let value = Value(rawValue: try integer(at: column)) else { throw bad(column, noun) }
        return value
    }

    /// Nil for none.
    func buildID(at place: Int? = nil) throws -> BuildID? {
        let bytes = try bytes(at: place)
        return bytes.isEmpty ? nil : BuildID(bytes: bytes)
    }
}
