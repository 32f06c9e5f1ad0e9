import Foundation
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: no source uses more memory than allowed, in ingest or in the app whose store it is.
/// Method: sound stores with one thing too large, made with SQLite.
@Suite struct SourceSizeTests {
    let directory = try! TemporaryDirectory()

    private func write(_ count: Int, to name: String, seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory(name), run: generator.run)
        for _ in 0..<count {
            try store.record(generator.report(state: .ended), images: generator.images)
        }
        try store.close()
    }

    /// SQLite loads the whole row to compare it, whatever its limit for values.
    @Test(arguments: ["delete", "wal"])
    func `a row of more than 4 MB in a large file is refused before SQLite reads it`(
        journal: String
    ) throws {
        try write(2, to: "big.sqlite", seed: 1)
        try write(3, to: "good.sqlite", seed: 2)
        let database = try RawDatabase(directory("big.sqlite"))
        try database.query(
            "pragma journal_mode = \(journal); update report set samples = zeroblob(20000000), checksum = null"
        )
        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([directory.path])
        try ingest.close()
        let refused = StoreError.overBudget(
            path: directory("big.sqlite"), detail: "it holds a row of more than 4 MB")
        #expect(summary.addedCount == 3)
        #expect(summary.files.map(\.outcome).contains(.skipped(refused)))
        withExtendedLifetime(database) {}
        guard journal == "delete" else { return }
        #expect(throws: refused) {
            try AgentStore(path: directory("big.sqlite"), run: ReportGenerator(seed: 1).run)
        }
    }

    @Test func `a virtual table in the place of one of ours refuses the store`() throws {
        try write(2, to: "a.sqlite", seed: 1)
        try RawDatabase(directory("a.sqlite")).query(
            """
            pragma legacy_alter_table = on; alter table label rename to old_label;
            create virtual table label using fts5(value, checksum)
            """)
        #expect(
            throws: StoreError.damaged(
                path: directory("a.sqlite"), detail: "its table label is not an ordinary table")
        ) { try ReportStore.open(path: directory("a.sqlite")) }
    }

    /// In memory it would need as much as its file.
    @Test func `a large store of an older schema is brought up to date in a copy`() throws {
        try FileManager.default.copyItem(
            at: Repository.root.appending(path: "sample-data/stores/agent-version-13.sqlite"),
            to: URL(filePath: directory("a.sqlite")))
        try RawDatabase(directory("a.sqlite")).query(
            "create table filler (x); insert into filler values (zeroblob(6000000))")
        let before = try Data(contentsOf: URL(filePath: directory("a.sqlite")))
        #expect(
            try ReportStore.open(path: directory("a.sqlite")).reports(ReportFilter()).count == 5)
        #expect(try Data(contentsOf: URL(filePath: directory("a.sqlite"))) == before)
    }
}
