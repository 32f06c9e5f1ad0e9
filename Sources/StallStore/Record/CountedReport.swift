// The part of a report that roll-ups count: the old one has to be known when a report changes.

package import StallModel

/// The columns that roll-ups count a report by.
package struct CountedReport: Equatable {
    package var loop: Int64
    package var verdict: StallVerdict
    package var cause: CauseClass?
    /// Nil before it was grouped.
    package var signature: Int64?
    package var entry: RollUpEntry

    /// The columns that `init(_:at:)` reads, in its order.
    package static let columns = """
        report.source, report.seq, report.loop, report.verdict, report.cause, report.signature,
        report.start_us, report.duration_ns, report.cpu_ns, report.delayed_ns
        """
    package static let columnCount: CInt = 10

    package init(_ row: Statement, at first: CInt) throws(StoreError) {
        loop = try row.integer(at: first + 2)
        verdict = try row.value(at: first + 3)
        cause = row.isNull(at: first + 4) ? nil : try row.value(at: first + 4)
        signature = row.optionalInteger(at: first + 5)
        entry = RollUpEntry(
            source: try row.integer(at: first), seq: try row.integer(at: first + 1),
            start_us: try row.time_us(at: first + 6),
            duration_ns: try row.duration_ns(at: first + 7),
            cpu_ns: try row.duration_ns(at: first + 8),
            delayed_ns: try row.delayed_ns(at: first + 9, in: row.duration_ns(at: first + 7)))
    }

    package init(_ row: ReportRow, source: Int64) {
        (loop, verdict, cause, signature) = (row.loop, row.verdict, row.cause?.cause, row.signature)
        entry = RollUpEntry(
            source: source, seq: row.seq, start_us: row.start_us, duration_ns: row.duration_ns,
            cpu_ns: row.cpu_ns, delayed_ns: row.delayed_ns)
    }
}

/// The numbers that a roll-up counts of one report.
package struct RollUpEntry: Hashable {
    package var source: Int64
    package var seq: Int64
    package var start_us: Int64
    package var duration_ns: Int64
    package var cpu_ns: Int64
    package var delayed_ns: Int64
}
