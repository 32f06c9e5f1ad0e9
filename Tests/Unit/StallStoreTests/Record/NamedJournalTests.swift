import Foundation
import StallArchive
import StallIngest
import StallModel
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: no store, of whatever origin, makes its reader or writer delete another file, or believe one of another user.
/// Method: a transaction of SQLite's that was cut short, whose journal says to be a part of one of several files. SQLite
/// rolls it back and then deletes the file that it names, if that names no journal; which is tried first.
@Suite struct NamedJournalTests {
    let directory = try! TemporaryDirectory()

    /// A store with such a journal, and the file that it names.
    private func makeStore(_ name: String, of run: ProcessRun) throws -> (
        store: String, other: String
    ) {
        let source = directory(name + "-source.sqlite")
        try AgentStore(path: source, run: run).close()
        let database = try RawDatabase(source)
        try database.query(
            """
            pragma cache_size = 1; begin immediate; create table t (x);
            with recursive n (i) as (select 1 union all select i + 1 from n limit 200)
            insert into t select hex(zeroblob(2000)) from n
            """)
        let (store, other) = (directory(name + ".sqlite"), directory(name + "-other"))
        for suffix in ["", "-journal"] {
            try FileManager.default.copyItem(atPath: source + suffix, toPath: store + suffix)
        }
        try Data("root:x:0:0\n".utf8).write(to: URL(filePath: other))
        // Source: SQLite, "Database File Format", section 3: the page of the lock byte, name, length, sum, magic number.
        func big(_ number: Int) -> Data {
            Data((0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) })
        }
        let path = Data(other.utf8)
        let sum = path.reduce(0) { $0 + Int($1) }
        let journal = try FileHandle(forWritingTo: URL(filePath: store + "-journal"))
        try journal.seekToEnd()
        try journal.write(
            contentsOf: big((1 << 30) / 4096 + 1) + path + big(path.count) + big(sum)
                + Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]))
        try journal.close()
        return (store, other)
    }

    @Test func `a store whose journal names another file is refused, and that file stays`() throws {
        let run = ReportGenerator(seed: 1).run
        let plain = try makeStore("plain", of: run)
        _ = try RawDatabase(plain.store).query("select count(*) from report")
        try #require(!FileManager.default.fileExists(atPath: plain.other))

        let (store, other) = try makeStore("agent", of: run)
        let error = #expect(throws: StoreError.self) { try AgentStore(path: store, run: run) }
        guard case .badCompanion = error else {
            Issue.record("\(String(describing: error))"); return
        }
        #expect(FileManager.default.fileExists(atPath: other))
    }

    @Test
    func `a journal that appears while a store is open, or before a migration, deletes nothing`()
        throws
    {
        let run = ReportGenerator(seed: 2).run
        let (named, other) = try makeStore("late", of: run)
        let path = directory("open.sqlite")
        let store = try AgentStore(path: path, run: run)
        try FileManager.default.copyItem(atPath: named + "-journal", toPath: path + "-journal")
        try? store.close()
        #expect(FileManager.default.fileExists(atPath: other))
        #expect(throws: StoreError.self) { try migrateStore(path: named) }
        #expect(FileManager.default.fileExists(atPath: other))
    }

    @Test(.enabled(if: geteuid() == 0), arguments: ["-journal", "-wal", "-shm"])
    func `what another user puts beside a store is not read`(suffix: String) throws {
        let path = directory("own\(suffix).sqlite")
        try AgentStore(path: path, run: ReportGenerator(seed: 3).run).close()
        try Data("another's".utf8).write(to: URL(filePath: path + suffix))
        chown(path + suffix, 65_534, 65_534)
        let attempts: [() throws -> Void] = [
            { _ = try AgentStore(path: path, run: ReportGenerator(seed: 3).run) },
            { _ = try ReportStore.open(path: path) }, { _ = try migrateStore(path: path) },
        ]
        for attempt in attempts {
            let error = #expect(throws: StoreError.self) { try attempt() }
            guard case .badCompanion(_, let detail) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(detail == "its \(suffix) file belongs to user 65534, and the store to user 0")
        }
        chown(path, 65_534, 65_534)
        _ = try? ReportStore.open(path: path)
        let facts = try #require(FileFacts(path + suffix))
        #expect(facts.owner == 65_534 && facts.size == 9)
    }
}
