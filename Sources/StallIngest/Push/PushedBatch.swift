// A batch that `stallctl push` sends and a collector takes: rows of one store, and how far the store is covered with
// them.

package import StallModel
package import StallQuery

/// Rows of one store, to be taken in one transaction or not at all.
///
/// A store numbers each change of its rows by the next revision. A batch holds the rows whose last change is one of
/// `from...through`; a row that changed again later comes with a later batch. Rows of one revision that fill several
/// batches
/// are sent with `through` below `from`, until the last.
package struct PushedBatch {
    /// The store that all rows were first written to.
    package var store: UniqueID
    /// The first revision that the rows cover.
    package var from: Int64
    /// The last one; at least `from - 1`.
    package var through: Int64
    /// The rows, from memory: reading them must not wait for a sender while the store is locked.
    package var rows: any ReportFeed

    package init(store: UniqueID, from: Int64, through: Int64, rows: any ReportFeed) {
        self.store = store
        self.from = from
        self.through = through
        self.rows = rows
    }
}

/// The outcome of a batch.
package enum PushedBatchResult: Hashable, Sendable {
    /// It is stored, and committed.
    case taken(Taken)
    /// Nothing was stored: the batch begins behind the position of the store, so that rows would be missing.
    case gap(through: Int64)
    /// Nothing was stored: some lines cannot be taken, and are to be left out of the next attempt.
    case refused(Refused)

    package struct Taken: Hashable, Sendable {
        /// The source is covered up to here.
        package var through: Int64
        /// Rows of any kind that the store did not have.
        package var added = 0
        /// Existing rows that the batch extended.
        package var changed = 0
        /// Lines of kinds or versions that this program does not know, by their `schema`; they were left out.
        package var unknown: [String: Int] = [:]

        package init(through: Int64) { self.through = through }
    }

    package struct Refused: Hashable, Sendable {
        /// The first of them. Line 0 is the batch itself: a position out of range.
        package var lines: [LineFault]
        package var count: Int

        package init(lines: [LineFault], count: Int) {
            self.lines = lines
            self.count = count
        }

        /// How many are named; the next attempt finds the others.
        package static let namedLimit = 1000
    }
}

/// How far a central store has a source.
package struct PushedPosition: Hashable, Sendable {
    /// All of it was taken as it was at this revision; 0 for a store that is not known.
    package var through: Int64
    /// The newest report that was taken until then, by its number and id. A sender whose store gives the number to
    /// another report is a copy that diverged: its reports below `through` are not here.
    package var last: Report?

    package struct Report: Hashable, Sendable {
        package var seq: Int64
        package var id: UniqueID
    }

    package init(through: Int64, last: Report? = nil) {
        self.through = through
        self.last = last
    }
}
