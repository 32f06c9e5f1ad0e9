// The servers that a store is spread over: each has a share of the reports, and all rows that reports share.

package import StallModel
internal import StallStore

/// A cluster that is written to: all of its shards have to answer.
package struct ClickHouseCluster {
    /// The server of the address.
    package let server: ClickHouseServer
    /// One of each shard, in their order: a row's shard is a number in it.
    package let shards: [ClickHouseServer]

    /// Queries the server for the others. Each shard has one server, and all of them answer HTTP at one port.
    package init(_ server: ClickHouseServer) throws(ClickHouseError) {
        self.server = server
        try Self.checkTables(server)
        guard let cluster = server.address.cluster else {
            shards = [server]
            return
        }
        // The database may be missing yet.
        var rows = try server.on(database: "system").rows(
            """
            select shard_num, any(host_name) from system.clusters where cluster = \(cluster)
            group by shard_num order by shard_num
            """, columnCount: 2)
        var shards: [ClickHouseServer] = []
        while try rows.step() { shards.append(server.at(host: try rows.text(at: 1))) }
        guard !shards.isEmpty else {
            throw .badAddress(detail: "the server knows no cluster of the name \(cluster)")
        }
        self.shards = shards
    }

    private static func checkTables(_ server: ClickHouseServer) throws(ClickHouseError) {
        do throws(ClickHouseError) {
            var rows = try server.rows(TableCluster.question, columnCount: 1)
            if try rows.step() { try TableCluster.check(try rows.text(), server.address) }
        } catch  where error.code == ClickHouseCode.unknownDatabase {
            // It is made by `migrate`.
        }
    }

    /// The shard of a row with this id, the same for every writer.
    package func shard(of id: UniqueID) -> Int {
        guard shards.count > 1 else { return 0 }
        var hash = ContentHash()
        id.withBytes { hash.combine(bytes: $0) }
        return Int(UInt64(bitPattern: hash.value) % UInt64(shards.count))
    }

    /// The bytes of all shards' tables on their disks.
    package func byteCount() throws(ClickHouseError) -> Int64 {
        var sum: Int64 = 0
        for shard in shards {
            var rows = try shard.rows(
                """
                select toInt64(sum(bytes_on_disk)) from system.parts
                where database = \(shard.address.database) and active
                """, columnCount: 1)
            if try rows.step() { sum = sum.addingSaturated(try rows.integer()) }
        }
        return sum
    }

    /// The newest migration that every shard has; 0 where some have none.
    package func schemaVersion() throws(ClickHouseError) -> Int {
        var version = Int.max
        for shard in shards { version = min(version, try Self.schemaVersion(of: shard)) }
        return version
    }

    private static func schemaVersion(of shard: ClickHouseServer) throws(ClickHouseError) -> Int {
        do throws(ClickHouseError) {
            var rows = try shard.rows("select max(version) from schema_version", columnCount: 1)
            return try rows.step() ? try rows.integer(as: Int.self) : 0
        } catch {
            guard let code = error.code,
                [ClickHouseCode.unknownTable, ClickHouseCode.unknownDatabase].contains(code)
            else { throw error }
            return 0
        }
    }

    /// Brings every shard to the newest schema. Statements that were run before change nothing, so that a migration
    /// that was cut off is run again.
    ///
    /// - Returns: The version before.
    @discardableResult
    package func migrate() throws(ClickHouseError) -> Int {
        let before = try schemaVersion()
        guard before <= ClickHouseMigration.newest else {
            throw .schema(
                store: server.name, version: before, supported: ClickHouseMigration.newest)
        }
        for migration in ClickHouseMigration.all where migration.version > before {
            for shard in shards {
                let outside = shard.on(database: "system")
                try outside.execute(
                    "create database if not exists \(name: shard.address.database)")
                for statement in migration.statements(for: shard.address) {
                    do {
                        try outside.execute(ClickHouseQuery(statement))
                    } catch let error
                        where statement.addsColumn
                        && error.code.map(ClickHouseCode.knownColumn.contains) == true
                    {
                        // The last run added it. 18.16 has no `add column if not exists`.
                    }
                }
                try shard.execute(
                    "insert into schema_version values (\(migration.version), \(migration.name))")
            }
        }
        return before
    }
}
