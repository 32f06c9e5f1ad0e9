// How far each store is in the cluster: written when all shards have its rows, read before more is taken.

package import StallModel
package import StallQuery
package import StallStore

/// The positions of stores.
package struct SourcePositions {
    private let cluster: ClickHouseCluster

    package init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// A store's own word for itself, and how far it was taken.
    package struct Position: Hashable, Sendable {
        package var store: UniqueID
        package var origin: UniqueID?
        package var revision: Int64
        package var lineCount: Int64
        /// The report with the greatest number until then; nil where there is none.
        package var last: (seq: Int64, id: UniqueID)? {
            get { lastSeq > 0 ? (lastSeq, lastID) : nil }
            set { (lastSeq, lastID) = newValue ?? (0, Self.noID) }
        }
        private var lastSeq: Int64 = 0
        private var lastID = Self.noID

        private static let noID = UniqueID((0, 0))

        package init(
            store: UniqueID, origin: UniqueID? = nil, revision: Int64, lineCount: Int64 = 0
        ) {
            (self.store, self.origin, self.revision) = (store, origin, revision)
            self.lineCount = lineCount
        }
    }

    private static let columns: ClickHouseQuery =
        "store, origin, revision, line_count, last_seq, last_id"

    /// The positions of some stores and of those that were once one with them; of all for nil.
    package func read(of stores: [UniqueID]? = nil) throws(ClickHouseError) -> [Position] {
        var condition: ClickHouseQuery = "1"
        if let stores {
            let ids = stores.map(\.bytes)
            condition = "store in \(list: ids) or origin in \(list: ids)"
        }
        var rows = try cluster.server.rows(
            "select \(Self.columns) from source final where \(condition)", columnCount: 6)
        var positions: [Position] = []
        while try rows.step() {
            var position = Position(
                store: try rows.uniqueID(), origin: try rows.optionalUniqueID(),
                revision: try rows.integer(), lineCount: try rows.integer())
            let (seq, id): (Int64, UniqueID) = (try rows.integer(), try rows.uniqueID())
            position.last = seq > 0 ? (seq, id) : nil
            positions.append(position)
        }
        return positions
    }

    /// The machines that the cluster has watched time of.
    package func watchedHosts() throws -> [WatchedHost] {
        try WatchedHost.read(cluster.server, at: .now())
    }

    /// The apps that stores have rows of.
    package func apps(of stores: [UniqueID]) throws(ClickHouseError) -> [UniqueID: Set<String>] {
        var apps = Dictionary(stores.map { ($0, Set<String>()) }) { first, _ in first }
        var rows = try cluster.server.rows(
            "select source, app from source_app where source in \(list: stores.map(\.bytes))",
            columnCount: 2)
        while try rows.step() {
            let source = try rows.uniqueID()
            apps[source, default: []].insert(try rows.text())
        }
        return apps
    }

    /// Notes positions in a store that has nothing else yet: later imports into it begin behind them.
    ///
    /// - Parameter stores: The stores to note; nil for all, and then a source with a report that is open in the cluster
    ///   begins
    ///   again from its beginning: whether the process is gone is decided where the report is.
    package func seed(_ connection: Connection, of stores: [UniqueID]? = nil) throws {
        let add = try connection.prepare(
            """
            insert or ignore into source (store, origin, revision, line_count) values (?, ?, ?, ?)
            """)
        let open = stores == nil ? try openSources() : []
        for position in try read(of: stores) {
            let revision = open.contains(position.store) ? 0 : position.revision
            try add.run(position.store, position.origin, revision, position.lineCount)
        }
    }

    /// The sources with reports that may still change.
    private func openSources() throws(ClickHouseError) -> Set<UniqueID> {
        // The latest state counts, which is read of these reports only: all rows of an id are on one shard. Shards look up
        // names without a database in another one.
        let database = cluster.server.address.database
        var rows = try cluster.server.rows(
            """
            select distinct source from (
                select source, id, argMax(state, revision) as state_now from report
                where id in (select id from \(name: database).report_local where state = 0)
                group by source, id)
            where state_now = 0
            """, columnCount: 1)
        var sources: Set<UniqueID> = []
        while try rows.step() { sources.insert(try rows.uniqueID()) }
        return sources
    }

    /// The positions of the sources of a store.
    private func readAll(of connection: Connection) throws -> [Position] {
        let sources = try connection.prepare("select store from source")
        var stores: [UniqueID] = []
        while try sources.step() { stores.append(try sources.uniqueID()) }
        // A batch has a few, and the cluster those of ten thousand hosts.
        return try read(of: stores.count > Self.namedLimit ? nil : stores)
    }

    /// How many stores a question names.
    private static let namedLimit = 1000

    /// Writes the positions that a store has, to every shard.
    func write(
        of connection: Connection, _ outbox: Outbox, _ summary: inout StoreCopy.Summary
    ) throws {
        let sources = try connection.prepare(
            """
            select store, origin, revision, line_count, machine, boot_id, id from source
            where revision > 0 or line_count > 0 or id in (select source from report_day)
            """)
        let findLast = try connection.prepare(
            """
            select seq, id from report where source = ? and seq <= ? order by seq desc limit 1
            """)
        var known: [UniqueID: Position] = [:]
        for position in try readAll(of: connection) { known[position.store] = position }
        var sharded = ShardedRows(
            """
            source (store, origin, revision, line_count, last_seq, last_id, machine, boot_id)
            """, isEverywhere: true, outbox)
        while try sources.step() {
            let (store, revision) = (try sources.uniqueID(at: 0), try sources.integer(at: 2))
            try findLast.bind(try sources.integer(at: 6), revision)
            var last = known[store]?.last
            if try findLast.step() {
                let found = (seq: try findLast.integer(), id: try findLast.uniqueID())
                if found.seq >= last?.seq ?? 0 { last = found }
            }
            findLast.reset()
            let lines = try sources.integer(at: 3)
            if let known = known[store] {
                // Of two writers of one store, the one that is behind must not win.
                guard revision >= known.revision else { continue }
                let isSame = revision == known.revision && lines == known.lineCount
                if isSame, last?.seq == known.last?.seq { continue }
            }
            try sharded.add { out in
                out.add(store)
                out.add(optionalContentOf: sources, at: 1)
                out.add(revision)
                out.add(lines)
                out.add(last?.seq ?? 0)
                out.add(last?.id ?? UniqueID((0, 0)))
                out.add(optionalContentOf: sources, at: 4)
                out.add(optionalContentOf: sources, at: 5)
            }
        }
        try sharded.flush()
        summary.add(sharded)
    }
}
