// Reports that were still open when last heard of: their process may have died in the stall.

internal import StallModel

/// Finds open reports and makes hangs of them. Works within the transaction of its caller.
struct OpenReports {
    private let find, mark: Statement

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            """
            select report.seq, \(ProcessRun.columns)
            from report indexed by report_open join loop on loop.id = report.loop join process_run on process_run.id = loop.run
            where report.source = ? and report.state = 0
            """)
        mark = try connection.prepare(
            "update report set state = 2, revision = ifnull(?, revision) where source = ? and seq = ?"
        )
    }

    /// The open reports of a source, with the process that each is about.
    func of(_ source: Int64) throws -> [(seq: Int64, run: ProcessRun)] {
        var reports: [(seq: Int64, run: ProcessRun)] = []
        try find.bind(source)
        while try find.step() {
            reports.append((find.integer(at: 0), try ProcessRun(find, at: 1)))
        }
        return reports
    }

    /// - Parameter revision: nil keeps the revision that the report's own store gave it.
    func markHang(_ seq: Int64, of source: Int64, revision: Int64?) throws {
        try mark.run(revision, source, seq)
    }
}
