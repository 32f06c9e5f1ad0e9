// Watched time by day and loop, as a central store has added it up.

internal import StallModel
package import StallStore

/// The key by which stretches of watched time are added up.
package struct ExposureCell: Hashable {
    /// The day that they began on, since 1970, UTC.
    package var day: Int64
    package var source: Int64
    package var loop: Int64
    /// They end on a later day, so that a time range of whole days may divide them.
    package var crossesMidnight: Bool

    package init(_ stretch: ExposureRow, source: Int64) {
        day = stretch.start_us.day
        self.source = source
        loop = stretch.loop
        crossesMidnight = max(stretch.start_us, stretch.end_us - 1).day > day
    }

    /// - Parameter row: Of `ExposureTotals.columns`.
    package init(_ row: Statement) throws(StoreError) {
        day = try row.day(at: 0)
        source = try row.integer(at: 1)
        loop = try row.integer(at: 2)
        crossesMidnight = try row.integer(at: 3) != 0
    }
}

/// The sums of one bucket.
package struct ExposureTotals: Hashable {
    package var stretchCount: Int64
    package var end_us: Int64
    package var revisions: ClosedRange<Int64>
    /// Begins where the first stretch does.
    package var sum: ExposureRow

    /// The columns that `init(_:withLengths:)` reads, in its order; the first of them are those of `ExposureCell`.
    package static let columns = """
        day, source, loop, crosses_midnight, stretch_count, start_us, end_us, first_revision,
        last_revision, watched_ns, busy_ns, ready_delay_ns, micro_stall_count, micro_stall_ns
        """

    package init(_ stretch: ExposureRow) {
        stretchCount = 1
        end_us = stretch.end_us
        revisions = stretch.revision...stretch.revision
        sum = stretch
        sum.revision = 0
    }

    /// - Parameter withLengths: The row has the lengths behind the columns.
    package init(_ row: Statement, withLengths: Bool) throws(StoreError) {
        row.go(to: 2)
        let loop = try row.integer()
        row.skip(1)
        stretchCount = try row.integer()
        let start = try row.time_us()
        end_us = try row.time_us()
        let first = try row.integer()
        revisions = first...max(first, try row.integer())
        sum = ExposureRow(
            revision: 0, loop: loop, start_us: start, watched_ns: try row.integer(),
            busy_ns: try row.integer(), readyDelay_ns: try row.integer(),
            microStallCount: try row.integer(), microStall_ns: try row.integer(),
            lengths: LengthHistogram())
        guard withLengths else { return }
        guard let lengths = LengthHistogram(encoded: row.blob()) else {
            throw row.damage("the iteration lengths of a day are not a histogram")
        }
        sum.lengths = lengths
    }

    package mutating func add(_ other: ExposureTotals) {
        stretchCount = stretchCount.addingSaturated(other.stretchCount)
        end_us = max(end_us, other.end_us)
        revisions =
            min(
                revisions.lowerBound, other.revisions.lowerBound)...max(
                revisions.upperBound, other.revisions.upperBound)
        sum.add(other.sum)
    }
}

extension Connection {
    /// Whether the watched time of this store is added up by day.
    package var hasExposureDays: Bool {
        get throws(StoreError) {
            try prepare("select has_exposure_days from grouping").first() == .value(1)
        }
    }
}
