import Foundation
import StallModel
import StallStore
import Testing

/// Goal: the schema is what was reviewed, and every migration in the folder is in the binary.
/// Method: the folder and a snapshot file are read from the sources beside this test.
@Suite struct SchemaTests {
    let directory = try! TemporaryDirectory()
    static let tests = URL(filePath: #filePath).deletingLastPathComponent()
    static let migrationFolder = tests.appending(path: "../../migrations").standardized

    @Test func `the embedded migrations are those of the folder, in order and unchanged`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.migrationFolder.path)
            .filter { $0.hasSuffix(".sql") }.sorted()
        #expect(embeddedMigrations.map { $0.name + ".sql" } == files)
        for (index, migration) in embeddedMigrations.enumerated() {
            let file = Self.migrationFolder.appending(path: migration.name + ".sql")
            #expect(try String(contentsOf: file, encoding: .utf8) == migration.sql)
            #expect(Int(migration.name.prefix(4)) == index + 1)
        }
    }

    @Test func `the schema is the snapshot`() throws {
        _ = try Ingest(into: directory("central.sqlite"))
        let schema = try RawDatabase(directory("central.sqlite")).query(
            "select sql from sqlite_schema where sql is not null order by type, name")
        let text = schema.map { $0[0]! + ";\n" }.joined(separator: "\n")
        let snapshot = Self.tests.appending(path: "Snapshots/schema.sql")
        if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
            try text.write(to: snapshot, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: snapshot, encoding: .utf8) == text)
    }

    @Test func `a store says its role and version where every SQLite tool sees them`() throws {
        let generator = ReportGenerator(seed: 1)
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).close()
        try Ingest(into: directory("central.sqlite")).close()
        let version = [String(embeddedMigrations.count)]
        let agent = try RawDatabase(directory("agent.sqlite"))
        #expect(try agent.query("pragma application_id") == [[String(0x5354_4c31)]])
        #expect(try agent.query("pragma user_version") == [version])
        let central = try RawDatabase(directory("central.sqlite"))
        #expect(try central.query("pragma application_id") == [[String(0x5354_4c43)]])
        #expect(try central.query("pragma user_version") == [version])
    }

    @Test func `a store of this version needs no migration`() throws {
        try Ingest(into: directory("central.sqlite")).close()
        let (from, to) = try migrateStore(path: directory("central.sqlite"))
        #expect(from == to && to == embeddedMigrations.count)
    }
}
