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
    var ending: StallEnding?
    var verdict: StallVerdict
    var start_us: Int64
    var duration_ns: Int64
    var cpu_ns: Int64
    var detectionDelay_ns: Int64
    var samples: [StoredSample]
    var cause: StoredCause?
    var threads: [StoredThread] = []
    var agent_ns: Int64 = 0
    var skippedThreads: Int64 = 0
    /// Its group; nil in an agent's store.
    var signature: Int64?
}

/// What roll-ups count a report by.
struct CountedReport: Hashable {
    var loop: Int64
    var verdict: StallVerdict
    var cause: CauseClass?
    /// Nil before it was grouped.
    var signature: Int64?
    var entry: RollUpEntry

    /// The columns that `init(_:at:)` reads, in its order.
    static let columns = """
        report.source, report.seq, report.loop, report.verdict, report.cause, report.signature,
        report.start_us, report.duration_ns, report.cpu_ns
        """

    init(_ row: Statement, at first: CInt) throws(StoreError) {
        loop = try row.integer(at: first + 2)
        verdict = try row.value(at: first + 3)
        cause = row.isNull(at: first + 4) ? nil : try row.value(at: first + 4)
        signature = row.optionalInteger(at: first + 5)
        entry = RollUpEntry(
            source: try row.integer(at: first), seq: try row.integer(at: first + 1),
            start_us: try row.integer(at: first + 6),
            duration_ns: try row.duration_ns(at: first + 7),
            cpu_ns: try row.duration_ns(at: first + 8))
    }

    init(_ row: ReportRow, source: Int64) {
        (loop, verdict, cause, signature) = (row.loop, row.verdict, row.cause?.cause, row.signature)
        entry = RollUpEntry(
            source: source, seq: row.seq, start_us: row.start_us, duration_ns: row.duration_ns,
            cpu_ns: row.cpu_ns)
    }
}

/// Adds reports and brings them up to date. Works within the transaction of its caller.
struct ReportRows {
    private let connection: Connection
    private let add, update, find, findSame, findState: Statement
    private let findColumns, setChecksum, findRevision: Statement

    /// What `report.checksum` is of, in its order. A column that a later migration adds is not covered: rows of this
    /// version would be called false.
    static let checkedColumns = """
        seq, revision, id, loop, mode, activity, phase, state, verdict, start_us, duration_ns, cpu_ns,
        detection_delay_ns, samples, cause, cause_confidence, cause_detail, threads, agent_ns,
        skipped_threads, ending
        """
    static let checkedRange: Range<CInt> = 0..<21

    init(_ connection: Connection) throws {
        self.connection = connection
        add = try connection.prepare(
            """
            insert or ignore into report (source, seq, revision, id, loop, mode, activity, phase,
                state, verdict, start_us, duration_ns, cpu_ns, detection_delay_ns, samples,
                cause, cause_confidence, cause_detail, threads, agent_ns, skipped_threads,
                signature, ending, checksum)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        update = try connection.prepare(
            """
            update report set revision = ?, loop = ?, mode = ?, activity = ?, phase = ?, state = ?,
                verdict = ?, start_us = ?, duration_ns = ?, cpu_ns = ?, detection_delay_ns = ?,
                samples = ?, cause = ?, cause_confidence = ?, cause_detail = ?, threads = ?,
                agent_ns = ?, skipped_threads = ?, signature = ?, ending = ?, checksum = ?
            where source = ? and seq = ? and id = ?
            """)
        find = try connection.prepare(
            "select \(CountedReport.columns) from report where source = ? and seq = ?")
        findSame = try connection.prepare(
            """
            select count(*) from report where source = ? and seq = ? and loop = ? and mode = ?
                and phase = ? and state = ? and verdict = ? and start_us = ? and duration_ns = ?
                and cpu_ns = ? and samples = ? and cause is ? and cause_detail is ? and threads is ?
            """)
        findState = try connection.prepare(
            "select state, duration_ns from report where source = ? and seq = ?")
        findColumns = try connection.prepare(
            "select \(Self.checkedColumns) from report where source = ? and seq = ?")
        findRevision = try connection.prepare(
            "select revision from report where source = ? and seq = ? and id = ?")
        setChecksum = try connection.prepare(
            "update report set checksum = ? where source = ? and seq = ?")
    }

    /// What a report counts as; nil when it is not there.
    func counted(source: Int64, seq: Int64) throws -> CountedReport? {
        try find.bind(source, seq)
        defer { find.reset() }
        return try find.step() ? CountedReport(find, at: 0) : nil
    }

    /// How far a report has come; nil when it is not there.
    func progress(source: Int64, seq: Int64) throws -> (isOpen: Bool, duration_ns: Int64)? {
        try findState.bind(source, seq)
        defer { findState.reset() }
        guard try findState.step() else { return nil }
        return (
            try findState.integer(at: 0) == Int64(StallState.open.rawValue),
            try findState.integer(at: 1)
        )
    }

    /// Whether the report of this number says what the row says. What its capture cost does not matter.
    func holds(_ row: ReportRow, source: Int64, seq: Int64) throws -> Bool {
        let threads = row.threads.isEmpty ? nil : row.threads.encoded
        return try findSame.number(
            source, seq, row.loop, row.mode, Int64(row.phase.rawValue), Int64(row.state.rawValue),
            Int64(row.verdict.rawValue), row.start_us, row.duration_ns, row.cpu_ns,
            row.samples.encoded, row.cause.map { Int64($0.cause.rawValue) }, row.cause?.detail,
            threads) == 1
    }

    /// Renews the checksum of a report after columns were changed in place.
    func renewChecksum(source: Int64, seq: Int64) throws {
        try findColumns.bind(source, seq)
        guard try findColumns.step() else { return }
        let checksum = findColumns.checksum(of: Self.checkedRange)
        findColumns.reset()
        try setChecksum.run(checksum, source, seq)
    }

    /// Whether the report is here, as it is or newer.
    func isKnown(_ row: ReportRow, source: Int64) throws -> Bool {
        try findRevision.found(source, row.seq, row.id) ?? -1 >= row.revision
    }

    enum Outcome {
        case added
        /// With what it counted as before.
        case changed(CountedReport)
    }

    /// Adds the report, or brings the one of this number and id up to date.
    ///
    /// - Returns: nil when another report has this number already.
    func put(_ row: ReportRow, source: Int64) throws -> Outcome? {
        let cause = row.cause.map { Int64($0.cause.rawValue) }
        let ending = row.ending.map { Int64($0.rawValue) }
        let samples = row.samples.encoded
        let threads = row.threads.isEmpty ? nil : row.threads.encoded
        let checksum = RowChecksum.of(
            row.seq, row.revision, row.id, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns, samples, cause,
            row.cause?.confidence, row.cause?.detail, threads, row.agent_ns, row.skippedThreads,
            ending)
        try add.run(
            source, row.seq, row.revision, row.id, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns, samples,
            cause, row.cause?.confidence, row.cause?.detail, threads, row.agent_ns,
            row.skippedThreads, row.signature, ending, checksum)
        if connection.changeCount > 0 { return .added }
        try find.bind(source, row.seq)
        guard try find.step() else { return nil }
        let before = try CountedReport(find, at: 0)
        find.reset()
        try update.run(
            row.revision, row.loop, row.mode, row.activity, Int64(row.phase.rawValue),
            Int64(row.state.rawValue), Int64(row.verdict.rawValue), row.start_us, row.duration_ns,
            row.cpu_ns, row.detectionDelay_ns, samples, cause, row.cause?.confidence,
            row.cause?.detail, threads, row.agent_ns, row.skippedThreads, row.signature,
            ending, checksum, source, row.seq, row.id)
        return connection.changeCount > 0 ? .changed(before) : nil
    }
}
