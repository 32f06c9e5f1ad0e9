// Writes one report. The agent and ingest both write through this.

internal import StallModel

/// Adds reports and brings them up to date. Works within the transaction of its caller.
package struct ReportRows {
    private let connection: Connection
    private let add, update, find, findSame, findProgress: Statement
    private let findColumns, setChecksum, findRevision, findLast: Statement

    package init(_ connection: Connection) throws {
        self.connection = connection
        add = try connection.prepare(ReportRow.insertion(or: "ignore"))
        update = try connection.prepare(ReportRow.change)
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
        findProgress = try connection.prepare(
            "select id, state, duration_ns from report where source = ? and seq = ?")
        findColumns = try connection.prepare(
            """
            select \((ReportRow.checkedColumns + ReportRow.laterColumns).joined(separator: ", "))
            from report where source = ? and seq = ?
            """)
        findRevision = try connection.prepare(
            "select revision from report where source = ? and seq = ? and id = ?")
        findLast = try connection.prepare(
            "select seq from report where source = ? order by seq desc limit 1")
        setChecksum = try connection.prepare(
            "update report set checksum = ? where source = ? and seq = ?")
    }

    /// The report as roll-ups count it; nil when it is not stored.
    package func counted(source: Int64, seq: Int64) throws -> CountedReport? {
        try find.bind(source, seq)
        defer { find.reset() }
        return try find.step() ? CountedReport(find) : nil
    }

    /// How far a report has come; nil when it is not there.
    package func progress(source: Int64, seq: Int64) throws -> ReportProgress? {
        try findProgress.bind(source, seq)
        defer { findProgress.reset() }
        guard try findProgress.step() else { return nil }
        return ReportProgress(
            id: try findProgress.uniqueID(), state: try findProgress.value(),
            duration_ns: try findProgress.integer())
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
        return try findSame.step() && findSame.samples() == row.samples
    }

    /// Renews the checksum of a report after columns were changed in place.
    package func renewChecksum(source: Int64, seq: Int64) throws {
        try findColumns.bind(source, seq)
        guard try findColumns.step() else { return }
        let end = CInt(ReportRow.checkedColumns.count)
        let checksum = findColumns.checksum(
            of: 0..<end, later: end..<end + CInt(ReportRow.laterColumns.count))
        findColumns.reset()
        try setChecksum.run(checksum, source, seq)
    }

    /// Whether the report is here, as it is or newer.
    package func isKnown(_ row: ReportRow, source: Int64) throws -> Bool {
        try findRevision.found(source, row.seq, row.id) ?? -1 >= row.revision
    }

    /// The highest number of a source's reports.
    package func lastNumber(ofSource source: Int64) throws -> Int64? { try findLast.found(source) }

    package enum Outcome {
        case added
        /// With its older part in roll-ups.
        case changed(CountedReport)
    }

    /// Adds the report, or brings the one of this number and id up to date.
    ///
    /// - Returns: nil when another report has this number already.
    package func put(_ row: ReportRow, source: Int64) throws -> Outcome? {
        try row.bind(to: add, source: source)
        try add.finish()
        if connection.changeCount > 0 { return .added }
        guard let before = try counted(source: source, seq: row.seq) else { return nil }
        try row.bind(to: update, source: source)
        try update.finish()
        return connection.changeCount > 0 ? .changed(before) : nil
    }
}
