// Writes one report and its samples. The agent and ingest both write through this.

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
}

/// The columns of a sample's row.
struct SampleRow: Hashable {
    var offset_ns: Int64
    var weight_ns: Int64
    var isLate: Bool
    var thread: Int64
    var method: Int64?
    var stack: Int64?
    var captureCost_ns: Int64
    var failure: String?
}

/// Adds reports and brings them up to date. Works within the transaction of its caller.
struct ReportRows {
    private let connection: Connection
    private let add, update, removeSamples, addSample: Statement

    init(_ connection: Connection) throws {
        self.connection = connection
        add = try connection.prepare(
            """
            insert or ignore into report (source, seq, revision, id, loop, mode, activity, phase,
                state, verdict, start_us, duration_ns, cpu_ns, detection_delay_ns)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        update = try connection.prepare(
            """
            update report set revision = ?, loop = ?, mode = ?, activity = ?, phase = ?, state = ?,
                verdict = ?, start_us = ?, duration_ns = ?, cpu_ns = ?, detection_delay_ns = ?
            where source = ? and seq = ? and id = ?
            """)
        removeSamples = try connection.prepare("delete from sample where source = ? and seq = ?")
        addSample = try connection.prepare(
            """
            insert into sample (source, seq, position, offset_ns, weight_ns, is_late, thread, method,
                stack, capture_cost_ns, failure)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
    }

    enum Outcome { case added, changed }

    /// Adds the report, or brings the one of this number and id up to date.
    ///
    /// - Returns: nil when another report has this number already.
    func put(_ row: ReportRow, source: Int64) throws -> Outcome? {
        try add.run(
            source, row.seq, row.revision, row.id.bytes, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns)
        if connection.changeCount > 0 { return .added }
        try update.run(
            row.revision, row.loop, row.mode, row.activity, Int64(row.phase.rawValue),
            Int64(row.state.rawValue), Int64(row.verdict.rawValue), row.start_us, row.duration_ns,
            row.cpu_ns, row.detectionDelay_ns, source, row.seq, row.id.bytes)
        guard connection.changeCount > 0 else { return nil }
        try removeSamples.run(source, row.seq)
        return .changed
    }

    func add(
        _ sample: SampleRow, position: Int64, ofReport seq: Int64, source: Int64
    ) throws {
        try addSample.run(
            source, seq, position, sample.offset_ns, sample.weight_ns, sample.isLate, sample.thread,
            sample.method, sample.stack, sample.captureCost_ns, sample.failure)
    }
}
