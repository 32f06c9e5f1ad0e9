// Exposure and suppressed stalls as rows. The agent writes them, ingest imports them, queries read them; a row is
// checked whenever it comes out of a file.

package import StallModel

/// The columns of an exposure's row.
package struct ExposureRow: Hashable {
    package var revision: Int64
    package var loop: Int64
    package var start_us: Int64
    package var watched_ns: Int64
    package var busy_ns: Int64
    package var readyDelay_ns: Int64
    package var microStallCount: Int64
    package var microStall_ns: Int64
    package var lengths: LengthHistogram

    package init(
        revision: Int64, loop: Int64, start_us: Int64, watched_ns: Int64, busy_ns: Int64,
        readyDelay_ns: Int64, microStallCount: Int64, microStall_ns: Int64,
        lengths: LengthHistogram
    ) {
        self.revision = revision
        self.loop = loop
        self.start_us = start_us
        self.watched_ns = watched_ns
        self.busy_ns = busy_ns
        self.readyDelay_ns = readyDelay_ns
        self.microStallCount = microStallCount
        self.microStall_ns = microStall_ns
        self.lengths = lengths
    }

    /// Where the stretch ends; the nanoseconds below a microsecond are left out.
    package var end_us: Int64 { start_us.addingSaturated(watched_ns / 1000) }
}

/// The columns of a suppression's row.
package struct SuppressionRow: Equatable {
    package var loop: Int64
    package var place: Int64
    package var reason: SuppressionReason
    package var count: Int64
    package var total_ns: Int64

    package init(
        loop: Int64, place: Int64, reason: SuppressionReason, count: Int64, total_ns: Int64
    ) {
        self.loop = loop
        self.place = place
        self.reason = reason
        self.count = count
        self.total_ns = total_ns
    }
}

/// Writes exposure and suppressed stalls. Works within the transaction of its caller.
package struct ExposureRows {
    private let put, add, raise, findElsewhere: Statement

    package init(_ connection: Connection) throws {
        put = try connection.prepare(
            """
            insert or replace into exposure (source, revision, loop, start_us, watched_ns, busy_ns,
                ready_delay_ns, micro_stall_count, micro_stall_ns, iteration_count, lengths)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        findElsewhere = try connection.prepare(
            """
            select count(*) from run_source
            join exposure on exposure.source = run_source.source and exposure.revision = ?
                and exposure.loop = ?
            where run_source.run = (select run from loop where id = ?) and run_source.source <> ?
                and exposure.start_us = ? and exposure.watched_ns = ?
            """)
        let insert = """
            insert into suppression (source, revision, loop, place, reason, stall_count, total_ns)
            values (?, ?, ?, ?, ?, ?, ?) on conflict do update set
            """
        let raised = "\(insert) revision = max(revision, excluded.revision),"
        add = try connection.prepare(
            "\(insert) revision = excluded.revision, stall_count = stall_count + excluded.stall_count, "
                + "total_ns = total_ns + excluded.total_ns")
        raise = try connection.prepare(
            """
            \(raised) stall_count = max(stall_count, excluded.stall_count),
                total_ns = max(total_ns, excluded.total_ns)
            """)
    }

    package func put(_ row: ExposureRow, source: Int64) throws {
        try put.run(
            source, row.revision, row.loop, row.start_us, row.watched_ns, row.busy_ns,
            row.readyDelay_ns, row.microStallCount, row.microStall_ns, Int64(row.lengths.count),
            row.lengths.encoded)
    }

    /// Whether the same stretch is here under another source that the process's reports came from: a copy's.
    package func isElsewhere(_ row: ExposureRow, source: Int64) throws -> Bool {
        try findElsewhere.number(
            row.revision, row.loop, row.loop, source, row.start_us, row.watched_ns) != 0
    }

    /// Adds to the stored counts.
    package func add(_ row: SuppressionRow, source: Int64, revision: Int64) throws {
        try write(row, with: add, source: source, revision: revision)
    }

    /// Brings older counts up to date. Counts only grow: an older state changes nothing.
    package func raise(_ row: SuppressionRow, source: Int64, revision: Int64) throws {
        try write(row, with: raise, source: source, revision: revision)
    }

    private func write(
        _ row: SuppressionRow, with statement: Statement, source: Int64, revision: Int64
    ) throws {
        try statement.run(
            source, revision, row.loop, row.place, Int64(row.reason.rawValue), row.count,
            row.total_ns)
    }
}
