// The state of a cluster that has to be known before any query: whether its tables are those that this program reads,
// and whether all of its shards answer.

internal import StallModel

/// The state of a cluster when it was opened.
struct ClusterState {
    private(set) var grouping: GroupingRow?
    private(set) var schemaVersion = 0
    /// The addresses of shards that do not answer.
    private(set) var missingShards: [String] = []

    /// One statement for all of it. Its last part runs on all shards, and reads nothing.
    static let question: ClickHouseQuery = """
        select 'version', toInt64(max(version)), toInt64(0) from schema_version
        union all
        select 'grouping', rules_hash, pruned_before_us from grouping final
        union all
        select 'shards', toInt64(count()), toInt64(0) from rollup where day < -2000000000
        union all
        select concat('engine ', engine_full), toInt64(0), toInt64(0)
        from (\(TableCluster.question))
        """

    /// - Parameter server: Asked to do without the shards that do not answer, where there are any.
    init(_ server: inout ClickHouseServer) throws(ClickHouseError) {
        do throws(ClickHouseError) {
            try read(server)
        } catch  where error.isOfMissingShard {
            do throws(ClickHouseError) {
                missingShards = try Self.missingShards(server)
            } catch let refusal where refusal.code == ClickHouseCode.readOnly {
                // The user may not ask for a part either.
                throw error
            }
            // None where it was there again by then.
            server.skipsMissingShards = !missingShards.isEmpty
            try read(server)
        }
        guard schemaVersion == ClickHouseMigration.newest else {
            throw .schema(
                store: server.name, version: schemaVersion, supported: ClickHouseMigration.newest)
        }
    }

    private mutating func read(_ server: ClickHouseServer) throws(ClickHouseError) {
        do throws(ClickHouseError) {
            var rows = try server.rows(Self.question, columnCount: 3)
            while try rows.step() {
                let what = try rows.text(at: 0)
                switch what {
                case "version": schemaVersion = try rows.integer(at: 1)
                case "grouping":
                    grouping = GroupingRow(
                        rulesHash: try rows.integer(at: 1), pruned_us: try rows.integer(at: 2))
                case _ where what.hasPrefix("engine "):
                    try TableCluster.check(String(what.dropFirst(7)), server.address)
                default: break
                }
            }
        } catch {
            let missing = [ClickHouseCode.unknownTable, ClickHouseCode.unknownDatabase]
            guard let code = error.code, missing.contains(code) else { throw error }
            throw .schema(store: server.name, version: 0, supported: ClickHouseMigration.newest)
        }
    }

    /// The shards that do not answer when they are queried one by one.
    private static func missingShards(
        _ server: ClickHouseServer
    ) throws(ClickHouseError) -> [String] {
        guard let cluster = server.address.cluster else { return [] }
        var rows = try server.rows(
            """
            select shard_num, concat(host_name, ':', toString(port)) from system.clusters
            where cluster = \(cluster) order by shard_num, replica_num
            """, columnCount: 2)
        var missing: [String] = []
        while try rows.step() {
            let address = try rows.text(at: 1)
            do throws(ClickHouseError) {
                _ = try server.rows(
                    "select count() from remote(\(address), system, one)", columnCount: 1)
            } catch  where error.isOfMissingShard {
                missing.append(address)
            }
        }
        return missing
    }
}

extension ClickHouseError {
    /// Whether it is the error that one server does not reach another.
    var isOfMissingShard: Bool {
        switch code {
        case ClickHouseCode.allConnectionsFailed, ClickHouseCode.networkError,
            ClickHouseCode.socketTimeout:
            true
        default: false
        }
    }
}
