import Foundation
import StallModel
import StallStore
import TestSupport
import Testing

@testable import StallClickHouse

/// Goal: the schema is what was reviewed, and a store in memory is as one that all migrations made.
/// Method: both run; the file is the schema for reviewers, too.
@Suite struct ExcerptTests {
    private func schema(of connection: Connection) throws -> [String] {
        // In the order in which it was made, as a script needs it.
        let rows = try connection.prepare(
            "select sql from sqlite_schema where sql is not null order by type != 'table', rowid")
        var schema: [String] = []
        while try rows.step() { schema.append(rows.text(at: 0)) }
        return schema
    }

    @Test func `its schema is the newest`() throws {
        let migrated = try Connection(to: "", as: "migrated", .inMemory)
        try StoreFile.migrate(migrated, from: 0)
        let expected = try schema(of: migrated)
        if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
            let file = Repository.root.appending(path: "Sources/StallClickHouse/Read/schema.sql")
            let head =
                "-- Written by ExcerptTests (RECORD_SNAPSHOTS=1): what the migrations make.\n"
            try (head + expected.map { $0 + ";\n" }.joined())
                .write(to: file, atomically: true, encoding: .utf8)
        }
        let excerpt = try Excerpt(of: "clickhouse://one/stalls", nil)
        #expect(try schema(of: excerpt.connection) == expected)
    }
}
