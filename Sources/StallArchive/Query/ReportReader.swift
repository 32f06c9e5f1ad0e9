// Rows back into whole reports, with the frames of all their stacks.

internal import StallModel
internal import StallStore

/// Reads whole reports.
struct ReportReader {
    /// Selects the columns that `all` and `report` read; conditions, order and limit follow it.
    static let query = """
        select \(ReportRow.selected()), loop.name, loop.threshold_ns, mode.value, activity.value,
            \(ProcessRun.columns)
        from report join loop on loop.id = report.loop
        join process_run on process_run.id = loop.run
        join label mode on mode.id = report.mode
        left join label activity on activity.id = report.activity
        """
    let stacks: StackReader
    private let evidence: EvidenceReader

    init(_ connection: Connection) throws {
        stacks = try StackReader(connection)
        evidence = try EvidenceReader(connection)
    }

    /// The reports of all rows.
    func all(_ rows: Statement) throws -> [StallReport] {
        var reports: [StallReport] = []
        while try rows.step() { reports.append(try report(rows).report) }
        return reports
    }

    /// The report of the present row, and its revision.
    func report(_ rows: Statement) throws -> (report: StallReport, revision: Int64) {
        let row = try ReportRow(rows)
        let (loop, threshold) = (rows.text(), try rows.duration())
        let (mode, activity) = (rows.text(), rows.optionalText())
        var report = row.report(
            run: try ProcessRun(rows), loop: loop, threshold: threshold, mode: mode,
            activity: activity, cause: try evidence.cause(ofReport: rows))
        report.samples = try samples(row.samples, in: row.duration_ns, rows)
        report.threads = try row.threads.map { try thread($0, rows) }
        return (report, row.revision)
    }

    private func samples(
        _ samples: [StoredSample], in duration_ns: Int64, _ rows: Statement
    ) throws -> [Sample] {
        try zip(samples, samples.weights(in: duration_ns)).map { stored, weight in
            Sample(
                stored, weight_ns: weight, stack: try stack(stored.stack, of: "sample", rows))
        }
    }

    private func thread(_ stored: StoredThread, _ rows: Statement) throws -> ThreadSnapshot {
        ThreadSnapshot(stored, stack: try stack(stored.stack, of: "thread", rows))
    }

    private func stack(
        _ number: Int64?, of noun: String, _ rows: Statement
    ) throws -> StoredStack? {
        try number.map { number in
            guard let stack = try stacks.stack(number) else {
                throw rows.damage("a \(noun) refers to stack \(number), which is missing")
            }
            return stack
        }
    }
}

extension Sample {
    init(_ stored: StoredSample, weight_ns: Int64, stack: StoredStack? = nil) {
        self.init(
            offset: .nanoseconds(stored.offset_ns), weight: .nanoseconds(weight_ns),
            isLate: stored.isLate, thread: ThreadID(rawValue: stored.thread),
            method: stored.method, isTruncated: stack?.isTruncated ?? false,
            captureCost: .nanoseconds(stored.captureCost_ns), failure: stored.failure,
            locations: stack?.locations ?? [], frames: stack?.frames ?? [])
    }
}

extension ThreadSnapshot {
    init(_ stored: StoredThread, stack: StoredStack? = nil) {
        self.init(
            thread: ThreadID(rawValue: stored.thread), name: stored.name, role: stored.role,
            method: stored.method, isTruncated: stack?.isTruncated ?? false,
            failure: stored.failure, locations: stack?.locations ?? [],
            frames: stack?.frames ?? [])
    }
}
