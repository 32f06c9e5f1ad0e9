// Exposure and suppressed stalls as rows. The agent writes them, ingest takes them over, readers ask for them; a row
// is checked whenever it comes out of a file.

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
package struct SuppressionRow: Hashable {
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

    /// Adds to what is counted already.
    package func add(_ row: SuppressionRow, source: Int64, revision: Int64) throws {
        try write(row, with: add, source: source, revision: revision)
    }

    /// Brings what was counted before up to date. Counts only grow: an older state changes nothing.
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

extension Statement {
    /// An exposure whose columns begin with `watched_ns` at `first`, as `ExposureRow.measures` lists them.
    package func exposure(revision: Int64, loop: Int64, start_us: Int64, at first: CInt)
        throws(StoreError)
        -> ExposureRow
    {
        guard let lengths = LengthHistogram(encoded: blob(at: first + 5)) else {
            throw damage("iteration lengths are not a histogram")
        }
        guard ValueLimits.readableTimes.contains(start_us) else {
            throw damage("\(start_us) in start_us is not a time in microseconds")
        }
        let count = try limited(at: first + 3, 0...ValueLimits.count, "count")
        return ExposureRow(
            revision: revision, loop: loop, start_us: start_us,
            watched_ns: try limited_ns(at: first), busy_ns: try limited_ns(at: first + 1),
            readyDelay_ns: try limited_ns(at: first + 2), microStallCount: count,
            microStall_ns: try limited_ns(at: first + 4), lengths: lengths)
    }
}

extension ExposureRow {
    /// The columns that `Statement.exposure` reads, in its order.
    package static let measures = "\(totals), exposure.lengths"
    package static let measuresWithoutLengths = "\(totals), x''"
    private static let totals = """
        exposure.watched_ns, exposure.busy_ns, exposure.ready_delay_ns, exposure.micro_stall_count,
        exposure.micro_stall_ns
        """

    /// The part of the stretch that lies between two instants; what happened in it is taken as spread evenly.
    package func part(from since: UnixTime?, until: UnixTime?) -> ExposureRow {
        let end_us = start_us.addingReportingOverflow(watched_ns / 1000)
        let first = max(start_us, since?.microseconds ?? .min)
        let last = min(end_us.overflow ? .max : end_us.partialValue, until?.microseconds ?? .max)
        // The nanoseconds below a microsecond belong to the stretch's end.
        guard first > start_us || last < end_us.partialValue else { return self }
        var part = self
        part.start_us = first
        part.watched_ns = min(watched_ns, max(0, last - first) * 1000)
        let share = Double(part.watched_ns) / Double(max(watched_ns, 1))
        func scaled(_ value: Int64) -> Int64 { Int64((Double(value) * share).rounded()) }
        part.busy_ns = scaled(busy_ns)
        part.readyDelay_ns = scaled(readyDelay_ns)
        part.microStallCount = scaled(microStallCount)
        part.microStall_ns = scaled(microStall_ns)
        part.lengths = LengthHistogram(
            counts: lengths.counts.mapValues { Int(scaled(Int64($0))) })
        return part
    }

    /// Adds another stretch of the loop. Sums end at the largest number: no store can stop us.
    package mutating func add(_ other: ExposureRow) {
        start_us = min(start_us, other.start_us)
        watched_ns = watched_ns.addingSaturated(other.watched_ns)
        busy_ns = busy_ns.addingSaturated(other.busy_ns)
        readyDelay_ns = readyDelay_ns.addingSaturated(other.readyDelay_ns)
        microStallCount = microStallCount.addingSaturated(other.microStallCount)
        microStall_ns = microStall_ns.addingSaturated(other.microStall_ns)
        lengths.add(other.lengths)
    }
}
