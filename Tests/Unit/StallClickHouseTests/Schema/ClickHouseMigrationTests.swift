import Foundation
import StallClickHouse
import StallModel
import TestSupport
import Testing

/// Goal: every server gets the statements of the folder, with names that cannot become statements.
/// Method: the files, and a played cluster that notes what it is told.
@Suite struct ClickHouseMigrationTests {
    static let folder = Repository.root.appending(path: "migrations/clickhouse")

    @Test func `the embedded migrations are those of the folder, in order`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
            .filter { $0.hasSuffix(".sql") }.sorted()
        #expect(ClickHouseMigration.all.map { $0.name + ".sql" } == files)
        #expect(ClickHouseMigration.all.map(\.version) == Array(1...files.count))
    }

    @Test func `every shard gets every statement`() throws {
        let played = PlayedCluster()
        played.answers["max(version)"] = Array("0\n".utf8)
        #expect(try played.cluster().migrate() == 0)
        let created = { (host: String) in
            played.statements.filter { $0.host == host && $0.sql.contains("create table") }.map(
                \.sql)
        }
        #expect(created("one").count == created("two").count)
        let text = try ClickHouseMigration.all.map {
            try String(contentsOf: Self.folder.appending(path: $0.name + ".sql"), encoding: .utf8)
        }.joined()
        let count = text.split(separator: "\n").count { $0.hasPrefix("create table ") }
        #expect(created("one").count == count)
        for statement in created("one") {
            #expect(!statement.contains("{") && !statement.contains("}"))
        }
        let distributed = try #require(created("two").first { $0.contains(".report as") })
        #expect(distributed.contains("engine = Distributed(`stalls`, `stalls`, report_local)"))
    }

    @Test func `a database's name is a name, whatever it is`() throws {
        let played = PlayedCluster()
        played.answers["max(version)"] = Array("0\n".utf8)
        let server = try ClickHouseServer(
            ClickHouseAddress("clickhouse://one/a%60%3B%20drop%20database%20b"), password: "",
            sender: played, pause: { _ in })
        try ClickHouseCluster(server).migrate()
        let first = try #require(played.statements.first { $0.sql.contains("create database") })
        #expect(first.sql == "create database if not exists `a\\`; drop database b`")
        // A server on its own reads its own tables.
        let all = try #require(played.statements.first { $0.sql.contains(".report as") })
        #expect(all.sql.contains("engine = Merge(`a\\`; drop database b`, '^report_local$')"))
    }

    /// 18.16 and a current server.
    @Test(arguments: [44, 15])
    func `a column that the last run added is no error, and any other error is one`(
        code: Int
    ) throws {
        let played = PlayedCluster()
        played.answers["max(version)"] = Array("4\n".utf8)
        played.errors["alter table `stalls`.rollup_local add column"] = code
        #expect(try played.cluster().migrate() == 4)
        #expect(played.statements.contains { $0.sql.contains("insert into schema_version") })
        played.errors["alter table `stalls`.rollup_local add column"] = 241
        #expect(throws: ClickHouseError.self) { try played.cluster().migrate() }
    }

    /// Debian 12's server, 18.16, does not know it.
    @Test func `no statement needs a newer server's words`() throws {
        for migration in ClickHouseMigration.all {
            let text = try String(
                contentsOf: Self.folder.appending(path: migration.name + ".sql"), encoding: .utf8)
            #expect(!text.contains("column if "), "\(migration.name)")
        }
    }

    @Test func `a newer schema is refused`() throws {
        let played = PlayedCluster()
        played.answers["max(version)"] = Array("99\n".utf8)
        #expect(throws: ClickHouseError.self) { try played.cluster().migrate() }
        #expect(!played.statements.contains { $0.sql.contains("create") })
    }
}
