// The reports, each to the shard of its id.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Copies the table of reports.
struct ReportCopy {
    private let connection: Connection
    private let outbox: Outbox
    private let keys: StoredKeys
    private let lastPrunedDay: Int64

    /// - Parameter lastPrunedDay: Reports of it and of days before stay out; nil for none.
    init(
        _ connection: Connection, _ outbox: Outbox, _ keys: StoredKeys,
        behind lastPrunedDay: Int64?
    ) {
        (self.connection, self.outbox, self.keys) = (connection, outbox, keys)
        self.lastPrunedDay = lastPrunedDay ?? .min
    }

    private static let query = """
        select \(ReportRow.selected()), report.source, unnamed_report.seq is not null
        from report left join unnamed_report using (source, seq)
        """

    mutating func run(_ summary: inout StoreCopy.Summary) throws {
        var sharded = ShardedRows(
            """
            report_local (app, day, version, build_id, host, loop_name, bucket, is_unnamed,
                \(ClusterReport.columns))
            """, isEverywhere: false, outbox)
        let rows = try connection.prepare(Self.query)
        while try rows.step() {
            var row = try ReportRow(rows)
            let (source, isUnnamed) = try (rows.integer(), rows.integer())
            guard row.start_us.day > lastPrunedDay else { continue }
            try row.readCause(rows)
            guard let loop = keys.loops[row.loop] else {
                throw rows.damage("a report's loop is missing")
            }
            let report = try ClusterReport(row, ofSource: source, rows, keys, loop)
            try sharded.add(of: row.id) { out in
                out.add(loop.app)
                out.add(row.start_us.day)
                out.add(columns: loop.columns)
                out.add(Int64(DurationHistogram.bucket(ofNanoseconds: row.duration_ns)))
                out.add(isUnnamed)
                report.write(to: &out)
            }
        }
        try sharded.flush()
        summary.reportCount += sharded.rowCount
        summary.add(sharded)
    }
}
