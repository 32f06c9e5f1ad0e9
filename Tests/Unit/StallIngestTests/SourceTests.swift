import Foundation
import Glibc
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a source counts once under whatever name it comes, and waits while it is made.
/// Method: stores that were spoiled or copied through SQLite, beside honest ones.
@Suite struct SourceTests {
    let directory = try! TemporaryDirectory()

    private func write(_ count: Int, to name: String, seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory(name), run: generator.run)
        for _ in 0..<count {
            let report = generator.report(state: .ended)
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.countLosses(7, reason: .dropped)
        try store.countSuppressed(
            SuppressedStalls(
                run: generator.run, loop: "main", place: 5, reason: .place, count: 3,
                total: .seconds(2)), threshold: .milliseconds(250))
        try store.close()
    }

    @Test func `a store that is being made is not ready yet, and no failure`() throws {
        try write(3, to: "good.sqlite", seed: 1)
        // Its lock is held, and its file is empty.
        let database = try RawDatabase(directory("new.sqlite"))
        try database.query("begin immediate; create table report (x)")
        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([directory.path])
        #expect(summary.addedCount == 3 && summary.skippedCount == 0)
        #expect(summary.notReadyCount == 1)
        #expect(
            summary.files.map(\.outcome).contains(
                .skipped(.notReady(path: directory("new.sqlite")))))
        try database.query("rollback")
        unlink(directory("new.sqlite"))
        try write(2, to: "new.sqlite", seed: 2)
        #expect(try ingest.run([directory.path]).addedCount == 2)
        try ingest.close()
    }

    @Test func `what one process has counted counts once under whatever source it comes`() throws {
        try write(3, to: "a.sqlite", seed: 1)
        try FileManager.default.copyItem(
            atPath: directory("a.sqlite"), toPath: directory("b.sqlite"))
        try RawDatabase(directory("b.sqlite")).query(
            "update source set store = randomblob(16); update loss set report_count = 9")
        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run(
            [directory("a.sqlite"), directory("b.sqlite")], verifies: true)
        try ingest.close()
        #expect(summary.addedCount == 3)
        // The reports of the second are here under the first: the file may go.
        #expect(summary.files.map(\.missingCount) == [0, 0])
        #expect(summary.files.allSatisfy { $0.isFinished })
        let store = try ReportStore.open(path: directory("central.sqlite"))
        #expect(try store.status().losses == [.dropped: 9])
        #expect(try store.suppressedStalls(ReportFilter()).map(\.count) == [3])
        let above = try Ingest(into: directory("above.sqlite"))
        _ = try above.run([directory("central.sqlite"), directory("a.sqlite")])
        try above.close()
        let status = try ReportStore.open(path: directory("above.sqlite")).status()
        #expect(status.losses == [.dropped: 9] && status.reportCount == 3)
    }

    /// A restored image, or a store that claims to be another: its reports are here under the first identity.
    @Test func `a store under another identity is one source, however often it comes`() throws {
        try write(3, to: "a.sqlite", seed: 1)
        try FileManager.default.copyItem(
            atPath: directory("a.sqlite"), toPath: directory("b.sqlite"))
        let place = StoreLocation(of: directory("b.sqlite"))
        try RawDatabase(directory("b.sqlite")).query(
            """
            update source
            set store = randomblob(16), inode = \(place.inode), device = \(place.device)
            """)
        func ingest(_ names: String...) throws -> (added: Int, sources: Int) {
            let ingest = try Ingest(into: directory("central.sqlite"))
            let summary = try ingest.run(names.map { directory($0) })
            try ingest.close()
            let database = try RawDatabase(directory("central.sqlite"))
            return (summary.addedCount, try database.number("select count(*) from source"))
        }
        for round in 0..<3 {
            #expect(try ingest("a.sqlite", "b.sqlite", "b.sqlite") == (round == 0 ? 3 : 0, 2))
            #expect(try ingest("b.sqlite") == (0, 2))
        }
        // Another copy of that name, and new reports of both.
        try FileManager.default.copyItem(
            atPath: directory("b.sqlite"), toPath: directory("c.sqlite"))
        #expect(try ingest("c.sqlite", "a.sqlite") == (0, 2))
        try write(2, to: "b.sqlite", seed: 2)
        #expect(try ingest("a.sqlite", "b.sqlite") == (2, 2))
        #expect(try ingest("b.sqlite", "c.sqlite") == (0, 2))
        try expectSound(directory("central.sqlite"))
    }

    /// Both continued with a stall: one was seen to end, the other's process is gone. That is a conclusion, the end is not.
    @Test(arguments: [(5, 2), (2, 5)], [["a", "b"], ["b", "a"], ["b", "a", "b"]])
    func `a copy whose process is gone counts the same before and after one that ended`(
        seconds: (open: Int, ended: Int), order: [String]
    ) throws {
        try write(1, to: "a.sqlite", seed: 1)
        try FileManager.default.copyItem(
            atPath: directory("a.sqlite"), toPath: directory("b.sqlite"))
        let shared = try #require(
            RawDatabase(directory("a.sqlite")).query("select hex(id) from report")[0][0])
        // The copy does not know that it is one, and both go on.
        let place = StoreLocation(of: directory("b.sqlite"))
        try RawDatabase(directory("b.sqlite")).query(
            "update source set inode = \(place.inode), device = \(place.device)")
        try write(1, to: "a.sqlite", seed: 2)
        try write(1, to: "b.sqlite", seed: 3)
        for (name, state, duration) in [("a", 0, seconds.open), ("b", 1, seconds.ended)] {
            try RawDatabase(directory(name + ".sqlite")).query(
                """
                update process_run
                set host = '\(ProcessLife.current().host)', boot_id = 'an earlier one', checksum = null;
                update report set state = \(state), duration_ns = \(duration) * 1000000000, checksum = null
                where seq = (select min(seq) from report)
                """)
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        for name in order { _ = try ingest.run([directory(name + ".sqlite")]) }
        try ingest.close()
        let stored = try RawDatabase(directory("central.sqlite")).query(
            "select state, duration_ns / 1000000000 from report where hex(id) = '\(shared)'")
        #expect(stored == [["1", String(seconds.ended)]])
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }
}
