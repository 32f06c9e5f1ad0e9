// The new reports of an incoming store, some thousands at a time, each checked when it is read.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Some reports of an incoming source, with the file's numbers.
struct IncomingReports {
    var rows: [ReportRow] = []
    fileprivate var byteCount = 0

    // Rows that wait to be written must not fill the memory, whatever the file holds.
    fileprivate static let rowLimit = 10_000
    fileprivate static let byteLimit = 2 << 20
    fileprivate var isFull: Bool { rows.count >= Self.rowLimit || byteCount >= Self.byteLimit }
}

/// Reads the new reports of an incoming store.
final class IncomingReportRows {
    private let findChanged, findAdded: Statement
    private let evidence: EvidenceReader

    /// - Parameter role: An agent's store has an index of its reports' revisions.
    init(_ connection: Connection, role: StoreRole) throws {
        evidence = try EvidenceReader(connection)
        findChanged = try connection.prepare(Self.changedReports(role: role))
        findAdded = try connection.prepare(
            "select \(Self.columns) from report where source = ? and seq > ? order by seq")
    }

    /// Finds the reports of a source up to a number that changed behind a revision and number.
    static func changedReports(role: StoreRole) -> String {
        // The plus keeps SQLite from searching by number. Of a central store the reports of the source are read.
        let old = role == .agent ? "+seq <= ? and signature is null" : "seq <= ?"
        return """
            select \(columns) from report
            where source = ? and (revision, seq) > (?, ?) and \(old)
            order by revision, seq limit \(IncomingReports.rowLimit)
            """
    }

    private static let columns = ReportRow.selected() + ", report.checksum"
    private static let packed = ["samples", "cause_detail", "threads"].map(ReportRow.place(of:))

    /// The next new reports of a source. The cursor moves behind them; at its end no more come.
    func reports(ofSource source: Int64, _ cursor: inout ReportCursor) throws -> IncomingReports {
        var reports = IncomingReports()
        if case .changed(let revision, let seq) = cursor.stage {
            try findChanged.bind(source, revision, seq, cursor.start.seq)
            let isAtEnd = try read(findChanged, into: &reports)
            if isAtEnd {
                cursor.stage = .added(behind: cursor.lastOld)
            } else if let last = reports.rows.last {
                cursor.stage = .changed(revision: last.revision, seq: last.seq)
            }
        }
        if case .added(let seq) = cursor.stage, !reports.isFull {
            try findAdded.bind(source, seq)
            let isAtEnd = try read(findAdded, into: &reports)
            if isAtEnd {
                cursor.stage = .end
            } else if let last = reports.rows.last {
                cursor.stage = .added(behind: last.seq)
            }
        }
        return reports
    }

    /// Reads until the reports are full; true when there are no more rows.
    private func read(_ rows: Statement, into reports: inout IncomingReports) throws -> Bool {
        defer { rows.reset() }
        while !reports.isFull {
            guard try rows.step() else { return true }
            reports.rows.append(try report(rows))
            for packed in Self.packed {
                reports.byteCount += rows.blob(at: packed).count
            }
        }
        return false
    }

    private func report(_ rows: Statement) throws -> ReportRow {
        try rows.expectChecksum(
            at: ReportRow.selectedCount, of: ReportRow.checked, later: ReportRow.later, "a report")
        var row = try ReportRow(rows)
        rows.skip(1)
        try row.expectLimits(rows)
        row.cause = try evidence.storedCause(ofReport: rows)
        // Its group is that of the other store.
        row.signature = nil
        return row
    }
}
