import Foundation
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: every migration in the folder is in the binary, and a new store has the schema that they make together.
/// Method: the folder is read from the sources beside this test; both ways are gone.
@Suite struct SchemaTests {
    let directory = try! TemporaryDirectory()
    static let migrationFolder = Repository.root.appending(path: "migrations")

    @Test func `the embedded migrations are those of the folder, in order and unchanged`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.migrationFolder.path)
            .filter { $0.hasSuffix(".sql") }.sorted()
        #expect(embeddedMigrations.map { $0.name + ".sql" } == files)
        for migration in embeddedMigrations {
            let file = Self.migrationFolder.appending(path: migration.name + ".sql")
            #expect(try String(contentsOf: file, encoding: .utf8) == migration.sql)
        }
    }

    private func schema(of connection: Connection) throws -> [String] {
        // In the order in which it was made, as a script needs it.
        let rows = try connection.prepare(
            "select sql from sqlite_schema where sql is not null order by type != 'table', rowid")
        var schema: [String] = []
        while try rows.step() { schema.append(rows.text(at: 0)) }
        return schema
    }

    @Test func `a new store's schema is what all migrations make`() throws {
        let migrated = try Connection(to: "", as: "migrated", .inMemory)
        for migration in embeddedMigrations { try migrated.execute(migration.sql) }
        let expected = try schema(of: migrated)
        if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
            let file = Repository.root.appending(path: "Sources/CStoreSchema/schema.sql")
            let head =
                "-- Written by SchemaTests (RECORD_SNAPSHOTS=1): what the migrations make.\n"
            try (head + expected.map { $0 + ";\n" }.joined())
                .write(to: file, atomically: true, encoding: .utf8)
        }
        let new = try Connection(to: "", as: "new", .inMemory)
        try StoreFile.migrate(new, from: 0)
        #expect(try schema(of: new) == expected)
        // The script makes no rows: neither may they.
        let tables = try migrated.prepare("select name from sqlite_schema where type = 'table'")
        while try tables.step() {
            let count = try migrated.prepare("select count(*) from \(tables.text(at: 0))").number()
            #expect(count == 0)
        }
    }

    @Test func `a store says its role and version where every SQLite tool sees them`() throws {
        let generator = ReportGenerator(seed: 1)
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).close()
        try Ingest(into: directory("central.sqlite")).close()
        let version = [String(newestSchemaVersion)]
        let agent = try RawDatabase(directory("agent.sqlite"))
        #expect(try agent.query("pragma application_id") == [[String(0x5354_4c31)]])
        #expect(try agent.query("pragma user_version") == [version])
        let central = try RawDatabase(directory("central.sqlite"))
        #expect(try central.query("pragma application_id") == [[String(0x5354_4c43)]])
        #expect(try central.query("pragma user_version") == [version])
    }

    @Test func `every table is one that a reader expects`() throws {
        _ = try Ingest(into: directory("central.sqlite"))
        let found = try RawDatabase(directory("central.sqlite")).query(
            "select name from sqlite_schema where type = 'table' order by name")
        let expected = StoreFile.tables(ofVersion: newestSchemaVersion).sorted()
        #expect(found.map { $0[0] } == expected)
    }

    /// The versions of stores in the field; from 0010 on the version is the file's number.
    @Test func `a version says which migration was the last`() {
        let counted = [
            1: "0001", 2: "0002", 3: "0003", 4: "0004", 5: "0005", 6: "0007", 7: "0008", 8: "0009",
            10: "0010", 11: "0011", 12: "0012",
        ]
        for (version, file) in counted {
            let count = migrationCount(ofVersion: version)
            #expect(count.map { embeddedMigrations[$0 - 1].name.hasPrefix(file) } == true)
        }
        for migration in embeddedMigrations.dropFirst(8) {
            #expect(migration.name.hasPrefix(String(10_000 + migration.version).dropFirst()))
        }
        #expect(migrationCount(ofVersion: 0) == 0)
        #expect(newestSchemaVersion == embeddedMigrations.map(\.version).max())
    }

    /// Goal: no number in the file's header stops a command, or the app itself.
    /// Method: `user_version` is bytes 60 to 63; -2147483640 is version 8 with its first bit flipped.
    @Test(arguments: [-2_147_483_640, Int(Int32.min), -1, 9, 11_000, Int(Int32.max)])
    func `a version that no store has refuses the store`(version: Int) throws {
        let path = directory("agent.sqlite")
        let generator = ReportGenerator(seed: 1)
        try AgentStore(path: path, run: generator.run).close()
        try RawDatabase(path).query("pragma user_version = \(version)")
        let expected: StoreError =
            version > newestSchemaVersion
            ? .newer(path: path, version: version, supported: newestSchemaVersion)
            : .damaged(path: path, detail: "there is no schema version \(version)")
        #expect(throws: expected) { try ReportStore.open(path: path) }
        #expect(throws: expected) { try AgentStore(path: path, run: generator.run) }
        #expect(throws: expected) { try migrateStore(path: path) }
        #expect(throws: expected) { try checkStore(path: path) }
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).files.map(\.outcome) == [.skipped(expected)])
    }

    @Test func `a store of this version needs no migration`() throws {
        try Ingest(into: directory("central.sqlite")).close()
        let (from, to) = try migrateStore(path: directory("central.sqlite"))
        #expect(from == to && to == newestSchemaVersion)
    }

    /// Every earlier version's stores, as they were written then, are kept in sample-data.
    @Test(arguments: embeddedMigrations.map(\.version).dropLast())
    func `a store of an earlier version is read, ingested and migrated`(version: Int) throws {
        try expectUpgrade(of: "stores/agent-version-\(version).sqlite", from: version)
    }

    /// Each release leaves a store in sample-data.
    @Test(arguments: [(release: "0.1.0", version: 14)])
    func `a store of a release is read, ingested and migrated`(
        release: String, version: Int
    ) throws {
        try expectUpgrade(of: "releases/agent-\(release).sqlite", from: version)
    }

    private func expectUpgrade(of name: String, from version: Int) throws {
        let kept = Self.migrationFolder.appending(path: "../sample-data/\(name)")
        let path = directory("agent.sqlite")
        try FileManager.default.copyItem(at: kept.standardized, to: URL(filePath: path))
        let before = try Data(contentsOf: URL(filePath: path))
        let store = try ReportStore.open(path: path)
        let reports = try store.reports(ReportFilter())
        #expect(reports.count == 5)
        #expect(try store.status().schemaVersion == version)
        for report in reports {
            #expect(report.state == .ended && report.run.app == "victim")
            #expect(report.samples.count == 3)
            #expect(report.samples.allSatisfy { $0.frames.allSatisfy { $0.function != nil } })
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).addedCount == 5)
        try ingest.close()
        let central = try ReportStore.open(path: directory("central.sqlite"))
        #expect(Set(try central.reports(ReportFilter())) == Set(reports))
        #expect(try Data(contentsOf: URL(filePath: path)) == before)

        let (from, to) = try migrateStore(path: path)
        #expect(from == version && to == newestSchemaVersion)
        #expect(try ReportStore.open(path: path).reports(ReportFilter()) == reports)
        try expectSound(path)
        // A migrated store has the schema of a new one.
        let schema = "select type, name, sql from sqlite_schema where sql is not null order by name"
        #expect(
            try RawDatabase(path).query(schema)
                == RawDatabase(directory("central.sqlite")).query(schema))
    }

    @Test func `an older central store is the user's to migrate`() throws {
        let path = directory("central.sqlite")
        try RawDatabase(path).query(
            "pragma application_id = \(0x5354_4c43); pragma user_version = 1; "
                + embeddedMigrations[0].sql)
        let newest = newestSchemaVersion
        #expect(throws: StoreError.older(path: path, version: 1, supported: newest)) {
            try ReportStore.open(path: path)
        }
        try Ingest(into: path).close()
        #expect(try ReportStore.open(path: path).status().schemaVersion == newest)
    }

    /// Goal: a new verdict is named by every view, and is no damage of a central store.
    @Test func `each verdict has its word in the views, and is sound`() throws {
        var generator = ReportGenerator(seed: 10)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        var expected: [[String?]] = []
        for verdict in StallVerdict.all {
            var report = generator.report()
            report.verdict = verdict
            report.delayedTime = .zero
            try store.record(report, images: generator.images)
            expected.append([report.id.description, verdict.word])
        }
        try store.close()
        let central = directory("central.sqlite")
        let ingest = try Ingest(into: central)
        #expect(try ingest.run([directory("agent.sqlite")]).addedCount == StallVerdict.all.count)
        try ingest.close()
        for view in ["stall", "stall_of_day"] {
            let found = try RawDatabase(central).query("select id, verdict from \(view)")
            #expect(Set(found) == Set(expected), "\(view)")
        }
        try expectSound(central)
        #expect(try checkStore(path: central).isEmpty)
    }

    @Test func `the views say in words what the reports are`() throws {
        var generator = ReportGenerator(seed: 9)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        let reports = (0..<30).map { _ in generator.report() }
        for report in reports {
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        let database = try RawDatabase(path)
        let stalls = try database.query(
            """
            select id, app, loop, mode, activity, state, verdict, cause, phase,
                round(duration_ms * 1e6)
            from stall
            """)
        let expected = reports.map { report -> [String?] in
            [
                report.id.description, report.run.app, report.loop, report.mode, report.activity,
                "\(report.state)", "\(report.verdict)", report.cause?.cause.word,
                report.phase == .unknown ? nil : "\(report.phase)",
                "\(Double(report.duration.nanoseconds))",
            ]
        }
        #expect(Set(stalls) == Set(expected))
        let read = try ReportStore.open(path: path).reports(ReportFilter())
        let functions = Set(read.flatMap(\.samples).flatMap(\.frames).compactMap(\.function))
        let named = try database.query(
            "select distinct function from place where function is not null")
        #expect(Set(named.map { $0[0]! }) == functions)
    }
}
