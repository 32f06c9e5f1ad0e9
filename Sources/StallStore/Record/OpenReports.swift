// Reports that were still open when last written: their process may have died in the stall, or after its end.

package import StallModel

/// Finds open reports and closes them. Works within the transaction of its caller.
package struct OpenReports {
    private let find, mark: Statement

    package init(_ connection: Connection) throws {
        find = try connection.prepare(
            """
            select report.seq, report.id, report.duration_ns, \(ProcessRun.columns)
            from report indexed by report_open join loop on loop.id = report.loop join process_run on process_run.id = loop.run
            where report.source = ? and report.state = 0
            """)
        mark = try connection.prepare(
            """
            update report set \(StallOutcome.assignment), duration_ns = ifnull(?3, duration_ns),
                delayed_ns = min(delayed_ns, ifnull(?3, duration_ns)), revision = ifnull(?4, revision)
            where source = ?5 and seq = ?6
            """)
    }

    /// The open reports of a source, with the process that each is about.
    package func of(_ source: Int64) throws -> [OpenReport] {
        var reports: [OpenReport] = []
        try find.bind(source)
        while try find.step() {
            reports.append(
                OpenReport(
                    seq: try find.integer(), id: try find.uniqueID(),
                    duration_ns: try find.duration_ns(), run: try ProcessRun(find)))
        }
        return reports
    }

    /// - Parameter revision: nil keeps the revision that the report's own store gave it.
    package func close(_ seq: Int64, of source: Int64, as end: OpenStallEnd, revision: Int64?)
        throws
    {
        let (state, event) = end.outcome.numbers
        try mark.run(state, event, end.duration_ns, revision, source, seq)
    }
}

/// A report that is open.
package struct OpenReport {
    package let seq: Int64
    package let id: UniqueID
    var duration_ns: Int64
    var run: ProcessRun

    package init(_ row: ReportRow, of run: ProcessRun) {
        self.init(seq: row.seq, id: row.id, duration_ns: row.duration_ns, run: run)
    }

    init(seq: Int64, id: UniqueID, duration_ns: Int64, run: ProcessRun) {
        (self.seq, self.id, self.duration_ns, self.run) = (seq, id, duration_ns, run)
    }

    /// How the stall ended, if its process is over.
    package func end(in store: String, _ here: ProcessLife) -> OpenStallEnd? {
        ProcessRecord(of: run, besideStore: store).end(of: id, here, known_ns: duration_ns)
    }
}

extension ReportRow {
    /// Ends an open stall as `OpenReports` does in a store.
    package mutating func end(as end: OpenStallEnd) {
        outcome = end.outcome
        duration_ns = end.duration_ns ?? duration_ns
        delayed_ns = min(delayed_ns, duration_ns)
    }
}
