// A report is on the shard of its id. Where it is on another one as well, it counts twice.

internal import StallModel
internal import StallQuery

/// The reports that several shards have.
struct DoubledReports {
    private let cluster: ClickHouseCluster

    init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// How many reports are compared at a time, for a part of a server's memory.
    private static let sliceSize = 2_000_000

    /// Their ids, with the days that they are of.
    func ids() throws(ClickHouseError) -> [UniqueID: Int64] {
        guard cluster.shards.count > 1 else { return [:] }
        var ids: [UniqueID: Int64] = [:]
        do {
            try ReportSlices(
                server: cluster.server, conditions: ReportConditions(ReportFilter()),
                order: .stored,
                size: Self.sliceSize
            ).forEach { part in
                var rows = try cluster.server.rows(
                    """
                    select id, any(day) from \(part.reports(cluster.server))
                    group by id having count() > 1
                    """, columnCount: 2)
                while try rows.step() {
                    let id = try rows.uniqueID()
                    ids[id] = try rows.integer()
                }
                return true
            }
        } catch let error as ClickHouseError {
            throw error
        } catch {
            throw .badAnswer(store: cluster.server.name, detail: "\(error)")
        }
        return ids
    }

    /// Deletes the ones that are on other shards than their own.
    ///
    /// - Returns: The days that they are of.
    func delete(_ pause: @escaping (Double) -> Void) throws(ClickHouseError) -> Set<Int64> {
        let doubled = try ids()
        for (number, shard) in cluster.shards.enumerated() {
            let strays = doubled.keys.filter { cluster.shard(of: $0) != number }
            for part in strays.sorted(by: { $0.words < $1.words }).parts() {
                try shard.execute(
                    "alter table report_local delete where id in \(list: part.map(\.bytes))")
            }
            try Mutations(shard, pause).wait(for: "report_local")
        }
        return Set(doubled.values)
    }
}
