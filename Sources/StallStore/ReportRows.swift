// Writes one report. The agent and ingest both write through this.

internal import StallModel

/// The columns of a report's row.
struct ReportRow: Hashable {
    var seq: Int64
    var revision: Int64
    var id: UniqueID
    var loop: Int64
    var mode: Int64
    var activity: Int64?
    var phase: LoopPhase
    var state: StallState
    var verdict: StallVerdict
    var start_us: Int64
    var duration_ns: Int64
    var cpu_ns: Int64
    var detectionDelay_ns: Int64
    var samples: [StoredSample]
    var cause: StallCause?
    var threads: [StoredThread]
}

/// Adds reports and brings them up to date. Works within the transaction of its caller.
struct ReportRows {
    private let connection: Connection
    private let add, update: Statement

    init(_ connection: Connection) throws {
        self.connection = connection
        add = try connection.prepare(
            """
            insert or ignore into report (source, seq, revision, id, loop, mode, activity, phase,
                state, verdict, start_us, duration_ns, cpu_ns, detection_delay_ns, samples,
                cause, cause_confidence, cause_detail, threads)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        update = try connection.prepare(
            """
            update report set revision = ?, loop = ?, mode = ?, activity = ?, phase = ?, state = ?,
                verdict = ?, start_us = ?, duration_ns = ?, cpu_ns = ?, detection_delay_ns = ?,
                samples = ?, cause = ?, cause_confidence = ?, cause_detail = ?, threads = ?
            where source = ? and seq = ? and id = ?
            """)
    }

    enum Outcome { case added, changed }

    /// Adds the report, or brings the one of this number and id up to date.
    ///
    /// - Returns: nil when another report has this number already.
    func put(_ row: ReportRow, source: Int64) throws -> Outcome? {
        let cause = row.cause.map { Int64($0.cause.rawValue) }
        let threads = row.threads.isEmpty ? nil : row.threads.encoded
        try add.run(
            source, row.seq, row.revision, row.id.bytes, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns, row.samples.encoded,
            cause, row.cause?.confidence, row.cause?.encodedDetail, threads)
        if connection.changeCount > 0 { return .added }
        try update.run(
            row.revision, row.loop, row.mode, row.activity, Int64(row.phase.rawValue),
            Int64(row.state.rawValue), Int64(row.verdict.rawValue), row.start_us, row.duration_ns,
            row.cpu_ns, row.detectionDelay_ns, row.samples.encoded, cause, row.cause?.confidence,
            row.cause?.encodedDetail, threads, source, row.seq, row.id.bytes)
        return connection.changeCount > 0 ? .changed : nil
    }
}
