// Rows back into whole reports, with the frames of all their stacks.

internal import StallModel
internal import StallStore

/// Reads whole reports.
struct ReportReader {
    /// Selects the columns that `all` and `report` read; conditions, order and limit follow it.
    static let query = """
        select report.id, report.phase, report.state, report.verdict,
            report.start_us, report.duration_ns, report.cpu_ns, report.detection_delay_ns,
            loop.name, loop.threshold_ns, mode.value, activity.value, report.samples, report.cause,
            report.cause_confidence, report.cause_detail, report.threads, report.agent_ns,
            report.skipped_threads, report.ending, \(ProcessRun.columns),
            report.source, report.seq, report.revision, report.evidence, report.evidence_numbers,
            report.cause_permille, report.delayed_ns
        from report join loop on loop.id = report.loop
        join process_run on process_run.id = loop.run
        join label mode on mode.id = report.mode
        left join label activity on activity.id = report.activity
        """
    /// The column `evidence` of the query.
    private static let evidenceColumn: CInt = 32
    let stacks: StackReader
    private let evidence: EvidenceReader

    init(_ connection: Connection) throws {
        stacks = try StackReader(connection)
        evidence = try EvidenceReader(connection)
    }

    /// The reports of all rows.
    func all(_ rows: Statement) throws -> [StallReport] {
        var reports: [StallReport] = []
        while try rows.step() { reports.append(try report(rows)) }
        return reports
    }

    /// The report of the present row.
    func report(_ rows: Statement) throws -> StallReport {
        StallReport(
            id: try rows.uniqueID(at: 0), run: try ProcessRun(rows, at: 20),
            loop: rows.text(at: 8), mode: rows.text(at: 10), phase: try rows.value(at: 1),
            activity: rows.optionalText(at: 11),
            start: try rows.time(at: 4),
            duration: try rows.duration(at: 5), cpuTime: try rows.duration(at: 6),
            delayedTime: try rows.delayed(at: Self.evidenceColumn + 3, in: rows.duration_ns(at: 5)),
            threshold: try rows.duration(at: 9), detectionDelay: try rows.duration(at: 7),
            state: try rows.value(at: 2),
            ending: rows.isNull(at: 19) ? nil : try rows.value(at: 19),
            verdict: try rows.value(at: 3),
            samples: try samples(rows.samples(at: 12), in: rows.duration_ns(at: 5), rows),
            cause: try evidence.cause(rows, at: 13, evidence: Self.evidenceColumn),
            threads: try rows.threads(at: 16).map { try thread($0, rows) },
            skippedThreadCount: Int(try rows.count(at: 18)),
            agentTime: try rows.duration(at: 17))
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
