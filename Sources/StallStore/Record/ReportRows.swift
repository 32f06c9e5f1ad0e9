// Writes one report. The agent and ingest both write through this.

package import StallModel

/// The columns of a report's row.
package struct ReportRow: Equatable {
    package var seq: Int64
    package var revision: Int64
    package var id: UniqueID
    package var loop: Int64
    package var mode: Int64
    package var activity: Int64?
    package var phase: LoopPhase
    package var state: StallState
    package var ending: StallEnding?
    package var verdict: StallVerdict
    package var start_us: Int64
    package var duration_ns: Int64
    package var cpu_ns: Int64
    /// The part of the duration that was not the thread's own; zero where none is known.
    package var delayed_ns: Int64
    package var detectionDelay_ns: Int64
    package var samples: [StoredSample]
    package var cause: StoredCause?
    package var threads: [StoredThread] = []
    package var agent_ns: Int64 = 0
    package var skippedThreads: Int64 = 0
    /// Its group; nil in an agent's store.
    package var signature: Int64?
    /// How its evidence is written where it is shared; nil in an agent's store, whose causes have it as text.
    package var evidence: SharedEvidence?

    package init(
        seq: Int64, revision: Int64, id: UniqueID, loop: Int64, mode: Int64,
        activity: Int64? = nil, phase: LoopPhase, state: StallState, ending: StallEnding? = nil,
        verdict: StallVerdict, start_us: Int64, duration_ns: Int64, cpu_ns: Int64,
        delayed_ns: Int64 = 0, detectionDelay_ns: Int64, samples: [StoredSample],
        cause: StoredCause? = nil, threads: [StoredThread] = [], agent_ns: Int64 = 0,
        skippedThreads: Int64 = 0, signature: Int64? = nil
    ) {
        self.seq = seq
        self.revision = revision
        self.id = id
        self.loop = loop
        self.mode = mode
        self.activity = activity
        self.phase = phase
        self.state = state
        self.ending = ending
        self.verdict = verdict
        self.start_us = start_us
        self.duration_ns = duration_ns
        self.cpu_ns = cpu_ns
        self.delayed_ns = delayed_ns
        self.detectionDelay_ns = detectionDelay_ns
        self.samples = samples
        self.cause = cause
        self.threads = threads
        self.agent_ns = agent_ns
        self.skippedThreads = skippedThreads
        self.signature = signature
    }
}

/// A cause's evidence as a central store has it.
package struct SharedEvidence: Equatable {
    /// The number of the `evidence` row.
    package var id: Int64
    package var numbers: [UInt8]
    /// The rest of the cause's detail; nil where the cause alone implies it.
    package var detail: [UInt8]?

    package init(id: Int64, numbers: [UInt8], detail: [UInt8]?) {
        self.id = id
        self.numbers = numbers
        self.detail = detail
    }
}

/// Adds reports and brings them up to date. Works within the transaction of its caller.
package struct ReportRows {
    private let connection: Connection
    private let add, update, find, findSame, findState: Statement
    private let findColumns, setChecksum, findRevision: Statement

    /// The columns that `report.checksum` covers, in its order. A column that a later migration adds is not covered:
    /// rows of this version would be reported as false.
    package static let checkedColumns = """
        seq, revision, id, loop, mode, activity, phase, state, verdict, start_us, duration_ns, cpu_ns,
        detection_delay_ns, samples, cause, cause_confidence, cause_detail, threads, agent_ns,
        skipped_threads, ending
        """
    package static let checkedRange: Range<CInt> = 0..<21
    /// Columns that came later: the checksum covers them in rows where they hold something.
    package static let laterColumns = "evidence, evidence_numbers, cause_permille, delayed_ns"
    package static let laterCount: CInt = 4

    package init(_ connection: Connection) throws {
        self.connection = connection
        add = try connection.prepare(
            """
            insert or ignore into report (source, seq, revision, id, loop, mode, activity, phase,
                state, verdict, start_us, duration_ns, cpu_ns, detection_delay_ns, samples,
                cause, cause_confidence, cause_detail, threads, agent_ns, skipped_threads,
                signature, ending, checksum, evidence, evidence_numbers,
                cause_permille, delayed_ns)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        update = try connection.prepare(
            """
            update report set revision = ?, loop = ?, mode = ?, activity = ?, phase = ?, state = ?,
                verdict = ?, start_us = ?, duration_ns = ?, cpu_ns = ?, detection_delay_ns = ?,
                samples = ?, cause = ?, cause_confidence = ?, cause_detail = ?, threads = ?,
                agent_ns = ?, skipped_threads = ?, signature = ?, ending = ?, checksum = ?,
                evidence = ?, evidence_numbers = ?, cause_permille = ?, delayed_ns = ?
            where source = ? and seq = ? and id = ?
            """)
        find = try connection.prepare(
            "select \(CountedReport.columns) from report where source = ? and seq = ?")
        findSame = try connection.prepare(
            """
            select samples from report where source = ? and seq = ? and loop = ? and mode = ?
                and phase = ? and state = ? and verdict = ? and start_us = ? and duration_ns = ?
                and cpu_ns = ? and cause is ? and threads is ?
                and (cause_detail is ? and evidence is null
                    or cause_detail is ? and evidence = ? and evidence_numbers = ?)
            """)
        findState = try connection.prepare(
            "select state, duration_ns from report where source = ? and seq = ?")
        findColumns = try connection.prepare(
            """
            select \(Self.checkedColumns), \(Self.laterColumns)
            from report where source = ? and seq = ?
            """)
        findRevision = try connection.prepare(
            "select revision from report where source = ? and seq = ? and id = ?")
        setChecksum = try connection.prepare(
            "update report set checksum = ? where source = ? and seq = ?")
    }

    /// The report as roll-ups count it; nil when it is not stored.
    package func counted(source: Int64, seq: Int64) throws -> CountedReport? {
        try find.bind(source, seq)
        defer { find.reset() }
        return try find.step() ? CountedReport(find, at: 0) : nil
    }

    /// How far a report has come; nil when it is not there.
    package func progress(source: Int64, seq: Int64) throws -> (isOpen: Bool, duration_ns: Int64)? {
        try findState.bind(source, seq)
        defer { findState.reset() }
        guard try findState.step() else { return nil }
        return (
            try findState.integer(at: 0) == Int64(StallState.open.rawValue),
            try findState.integer(at: 1)
        )
    }

    /// Whether the report of this number has the content of the row. The cost of its capture does not matter, nor does
    /// its own time: a copy that came by way of an older program lacks it.
    package func holds(_ row: ReportRow, source: Int64, seq: Int64) throws -> Bool {
        let threads = row.threads.isEmpty ? nil : row.threads.encoded
        try findSame.bind(
            source, seq, row.loop, row.mode, Int64(row.phase.rawValue), Int64(row.state.rawValue),
            Int64(row.verdict.rawValue), row.start_us, row.duration_ns, row.cpu_ns,
            row.cause.map { Int64($0.cause.rawValue) }, threads,
            // As text it is in stores of agents and of older programs.
            row.cause?.detail, row.evidence?.detail, row.evidence?.id, row.evidence?.numbers)
        defer { findSame.reset() }
        // Older programs encoded the same samples in another way.
        return try findSame.step() && findSame.samples(at: 0) == row.samples
    }

    /// Renews the checksum of a report after columns were changed in place.
    package func renewChecksum(source: Int64, seq: Int64) throws {
        try findColumns.bind(source, seq)
        guard try findColumns.step() else { return }
        let end = Self.checkedRange.upperBound
        let checksum = findColumns.checksum(
            of: Self.checkedRange, later: end..<end + Self.laterCount)
        findColumns.reset()
        try setChecksum.run(checksum, source, seq)
    }

    /// Whether the report is here, as it is or newer.
    package func isKnown(_ row: ReportRow, source: Int64) throws -> Bool {
        try findRevision.found(source, row.seq, row.id) ?? -1 >= row.revision
    }

    package enum Outcome {
        case added
        /// With its older part in roll-ups.
        case changed(CountedReport)
    }

    /// Adds the report, or brings the one of this number and id up to date.
    ///
    /// - Returns: nil when another report has this number already.
    package func put(_ row: ReportRow, source: Int64) throws -> Outcome? {
        let cause = row.cause.map { Int64($0.cause.rawValue) }
        let ending = row.ending.map { Int64($0.rawValue) }
        let samples = row.samples.encoded
        let threads = row.threads.isEmpty ? nil : row.threads.encoded
        let detail = row.evidence == nil ? row.cause?.detail : row.evidence?.detail
        let permille = row.evidence == nil ? nil : row.cause?.permille
        let delayed = row.delayed_ns == 0 ? nil : row.delayed_ns
        let confidence = permille == nil ? row.cause?.confidence : nil
        var sum = RowChecksum.over(
            row.seq, row.revision, row.id, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns, samples, cause,
            confidence, detail, threads, row.agent_ns, row.skippedThreads, ending)
        if let evidence = row.evidence {
            evidence.id.combine(into: &sum)
            evidence.numbers.combine(into: &sum)
            permille?.combine(into: &sum)
        }
        delayed?.combine(into: &sum)
        let checksum = sum.value
        try add.run(
            source, row.seq, row.revision, row.id, row.loop, row.mode, row.activity,
            Int64(row.phase.rawValue), Int64(row.state.rawValue), Int64(row.verdict.rawValue),
            row.start_us, row.duration_ns, row.cpu_ns, row.detectionDelay_ns, samples,
            cause, confidence, detail, threads, row.agent_ns,
            row.skippedThreads, row.signature, ending, checksum, row.evidence?.id,
            row.evidence?.numbers, permille, delayed)
        if connection.changeCount > 0 { return .added }
        try find.bind(source, row.seq)
        guard try find.step() else { return nil }
        let before = try CountedReport(find, at: 0)
        find.reset()
        try update.run(
            row.revision, row.loop, row.mode, row.activity, Int64(row.phase.rawValue),
            Int64(row.state.rawValue), Int64(row.verdict.rawValue), row.start_us, row.duration_ns,
            row.cpu_ns, row.detectionDelay_ns, samples, cause, confidence,
            detail, threads, row.agent_ns, row.skippedThreads, row.signature,
            ending, checksum, row.evidence?.id, row.evidence?.numbers, permille, delayed, source,
            row.seq, row.id)
        return connection.changeCount > 0 ? .changed(before) : nil
    }
}
