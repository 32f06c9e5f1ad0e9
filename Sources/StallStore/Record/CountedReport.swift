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

    /// The columns that `init(_:)` reads, in its order.
    package static let columns = """
        report.source, report.seq, report.loop, report.verdict, report.cause, report.signature,
        report.start_us, report.duration_ns, report.cpu_ns, report.delayed_ns
        """

    package init(_ row: Statement) throws(StoreError) {
        let (source, seq) = (try row.integer(), try row.integer())
        loop = try row.integer()
        verdict = try row.value()
        let column = row.next()
        cause = row.isNull(at: column) ? nil : try row.value(at: column)
        signature = row.optionalInteger()
        let (start, duration) = (try row.time_us(), try row.duration_ns())
        entry = RollUpEntry(
            source: source, seq: seq, start_us: start, duration_ns: duration,
            cpu_ns: try row.duration_ns(), delayed_ns: try row.delayed_ns(in: duration))
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
