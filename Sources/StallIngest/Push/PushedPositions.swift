// The positions up to which stores were imported, for their senders.

internal import StallModel
internal import StallStore

/// The positions of stores. Works within the transaction of its caller.
final class PushedPositions {
    private let findRevision, findLast, add, cover: Statement

    init(_ connection: Connection) throws {
        findRevision = try connection.prepare("select revision from source where store = ?")
        findLast = try connection.prepare(
            """
            select seq, report.id from report join source on source.id = report.source
            where store = ? and seq <= ? order by seq desc limit 1
            """)
        add = try connection.prepare("insert or ignore into source (store) values (?)")
        // The cover that an `ingest` in parts has recorded of reports with higher numbers stays valid.
        cover = try connection.prepare(
            """
            update source set revision = max(revision, ?1),
                partial_seq = iif(partial_seq <= ?1, null, partial_seq),
                partial_revision = iif(partial_seq <= ?1, null, partial_revision)
            where store = ?2
            """)
    }

    func position(of store: UniqueID) throws -> PushedPosition {
        guard let revision = try findRevision.found(store) else {
            return PushedPosition(through: 0)
        }
        try findLast.bind(store, revision)
        defer { findLast.reset() }
        guard try findLast.step() else { return PushedPosition(through: revision) }
        return PushedPosition(
            through: revision,
            last: PushedPosition.Report(
                seq: try findLast.integer(), id: try findLast.uniqueID()))
    }

    /// Notes that a store was taken up to a revision.
    func cover(_ store: UniqueID, through revision: Int64) throws {
        try add.run(store)
        try cover.run(revision, store)
    }
}
