// How far a source was imported. Of a large one the reports come in several transactions, and the position moves with
// each.

internal import StallModel
internal import StallStore

/// How far the reports of a source were imported: those up to a number, as they were at a revision.
///
/// A report is numbered by the revision of its first write, so that of a source that was imported whole both are its
/// revision.
struct SourcePosition: Hashable {
    var seq: Int64
    var revision: Int64

    init(seq: Int64, revision: Int64) { (self.seq, self.revision) = (seq, revision) }

    init(whole revision: Int64) { (seq, self.revision) = (revision, revision) }

    /// Whether a report of this number was imported as it was at this revision.
    func covers(seq: Int64, revision: Int64) -> Bool {
        seq <= self.seq && revision <= self.revision
    }

    /// Whether nothing that is new behind `other` is covered here.
    func isBehind(orAt other: SourcePosition) -> Bool {
        seq <= other.seq && revision <= other.revision
    }
}

/// The watermarks of a source.
struct SourceWatermark: Hashable {
    /// All of the source was imported as it was at this revision: reports, watched time, losses and names.
    var revision: Int64 = 0
    /// Its reports were imported up to here; nil unless an import ended half-way.
    var partial: SourcePosition?

    /// Where the reports that are new begin.
    var position: SourcePosition { partial ?? SourcePosition(whole: revision) }

    /// The columns of `source` that `init(_:)` reads, in its order.
    static let columns = "revision, partial_seq, partial_revision"

    init() {}

    init(revision: Int64) { self.revision = revision }

    init(_ row: Statement) throws(StoreError) {
        revision = try row.integer()
        let (seq, partialRevision) = (row.optionalInteger(), row.optionalInteger())
        if let seq, let partialRevision {
            partial = SourcePosition(seq: seq, revision: partialRevision)
        }
    }
}

/// Where the reading of a source's new reports is: first those that changed, in the order of their changes, then those
/// that were added, in the order of their numbers.
struct ReportCursor: Hashable {
    enum Stage: Hashable {
        /// Behind this revision, and behind this number among the reports of the revision.
        case changed(revision: Int64, seq: Int64)
        case added(behind: Int64)
        case end
    }

    let start: SourcePosition
    var stage: Stage

    init(from start: SourcePosition) {
        self.start = start
        stage =
            start.seq > 0
            ? .changed(revision: start.revision, seq: .max) : .added(behind: .min)
    }

    /// The first number that counts as added comes behind it.
    var lastOld: Int64 { start.seq > 0 ? start.seq : .min }

    /// The position once the reports that were read until here are imported.
    ///
    /// - Parameter revision: The source's revision in the snapshot that is read.
    func position(at revision: Int64) -> SourcePosition {
        switch stage {
        case .changed(let changed, _):
            // Other reports may have changed at the last revision, too.
            SourcePosition(seq: start.seq, revision: max(start.revision, changed - 1))
        case .added(let seq): SourcePosition(seq: max(start.seq, seq), revision: revision)
        case .end: SourcePosition(whole: revision)
        }
    }
}
