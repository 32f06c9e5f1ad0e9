// Repairs the faults of `ClusterCheck` that the shards together can: rows that one of them lacks, positions on which
// they differ,
// reports that are on several, and roll-ups. A row that no shard has is gone: then its store is to be ingested again.

internal import StallModel

/// Repairs a cluster.
package struct ClusterRepair {
    private let cluster: ClickHouseCluster
    private let pause: (Double) -> Void

    /// - Parameter pause: Waits for a number of seconds.
    package init(
        _ cluster: ClickHouseCluster,
        pause: @escaping (Double) -> Void = ClickHouseServer.sleep(seconds:)
    ) {
        (self.cluster, self.pause) = (cluster, pause)
    }

    package func run() throws {
        for table in SharedTable.all where try table.fault(cluster) != nil {
            if table.name == SharedTable.source.name {
                try takeBackPositions()
            } else {
                try exchange(table)
            }
        }
        _ = try DoubledReports(cluster).delete(pause)
        try StagedIngest(cluster).renewAll()
    }

    /// Gives every shard the rows of the others. Of one key the latest version counts.
    private func exchange(_ table: SharedTable) throws(ClickHouseError) {
        let contents = try table.contents(cluster)
        for (number, shard) in cluster.shards.enumerated() {
            let partCount = contents[number].count / Self.partSize + 1
            for part in 0..<partCount {
                let rows = try shard.rows(
                    """
                    select * from \(name: table.name) final
                    where cityHash64(\(table.columns)) % \(partCount) = \(part)
                    """, columnCount: 0)
                guard !rows.all.isEmpty else { continue }
                for (other, target) in cluster.shards.enumerated() where other != number {
                    try target.insert(into: "\(name: table.name)", rows.all)
                }
            }
        }
    }

    private static let partSize: Int64 = 50_000

    /// A store is taken again from the earliest position that a shard has of it, and from its beginning where one has none.
    private func takeBackPositions() throws(ClickHouseError) {
        var known: [UniqueID: [Int64]] = [:]
        for shard in cluster.shards {
            var rows = try shard.rows("select store, revision from source final", columnCount: 2)
            while try rows.step() {
                let store = try rows.uniqueID()
                known[store, default: []].append(try rows.integer())
            }
        }
        let unclear = known.filter { $1.count < cluster.shards.count || Set($1).count > 1 }
        for part in unclear.keys.sorted(by: { $0.words < $1.words }).parts(of: 500) {
            var earliest: [UInt8] = []
            for store in part {
                let revisions = known[store] ?? []
                let isEverywhere = revisions.count == cluster.shards.count
                earliest += try position(
                    of: store, revisions.min() ?? 0, isBeginning: !isEverywhere)
            }
            for shard in cluster.shards {
                try shard.execute(
                    "alter table source delete where store in \(list: part.map(\.bytes))")
            }
            for shard in cluster.shards {
                try Mutations(shard, pause).wait(for: "source")
                try shard.insert(into: "source", earliest)
            }
        }
    }

    /// The row of the first shard that has this one. A store keeps its identity when it is taken from its beginning.
    private func position(
        of store: UniqueID, _ revision: Int64, isBeginning: Bool
    ) throws(ClickHouseError) -> [UInt8] {
        let columns: ClickHouseQuery =
            isBeginning
            ? "store, origin, 0, 0, 0, toFixedString('', 16), machine, boot_id" : "*"
        for shard in cluster.shards {
            let rows = try shard.rows(
                """
                select \(columns) from source final
                where store = \(store) and revision = \(revision) limit 1
                """, columnCount: 0)
            if !rows.all.isEmpty { return rows.all }
        }
        return []
    }
}
