import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: pruning deletes what it was asked to and nothing else, and a check distinguishes sound stores from corrupted
/// ones.
/// Method: a central store from several agents; SQL and the check show what remains.
@Suite struct PruneTests {
    let directory = try! TemporaryDirectory()

    /// A central store of three agents' reports.
    func makeCentral() throws -> (path: String, reports: [StallReport]) {
        var all: [StallReport] = []
        try FileManager.default.createDirectory(
            atPath: directory("in"), withIntermediateDirectories: false)
        for seed: UInt64 in 1...3 {
            var generator = ReportGenerator(seed: seed)
            let store = try AgentStore(path: directory("in/\(seed).sqlite"), run: generator.run)
            for _ in 0..<100 {
                let report = generator.report(state: .ended)
                all.append(report.named())
                try store.record(report, images: generator.images)
            }
            try store.countLosses(7, reason: .suppressed)
            try store.close()
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("in")]).addedCount == 300)
        try ingest.close()
        return (directory("central.sqlite"), all)
    }

    @Test func `reports before a time go, and do not come back`() throws {
        let (path, reports) = try makeCentral()
        let middle = reports.map(\.start).sorted()[150]
        let summary = try pruneStore(path: path, startedBefore: middle)
        #expect(summary.deletedCount == reports.count { $0.start < middle })
        #expect(summary.bytesAfter < summary.bytesBefore)
        let ingest = try Ingest(into: path)
        let again = try ingest.run([directory("in")])
        #expect(again.addedCount == 0 && again.changedCount == 0)
        try ingest.close()
        let store = try ReportStore.open(path: path)
        #expect(
            Set(try store.reports(ReportFilter())) == Set(reports.filter { $0.start >= middle }))
        #expect(try store.status().losses == [.suppressed: 21])
        #expect(try checkStore(path: path).isEmpty)
        try expectSound(path)
        // Everything: only the watermarks of the sources remain.
        _ = try pruneStore(path: path, startedBefore: UnixTime(microseconds: .max))
        let database = try RawDatabase(path)
        for table in [
            "report", "stack", "location", "function", "image", "loop", "process_run", "label",
        ] {
            #expect(try database.number("select count(*) from \(table)") == 0, "\(table)")
        }
        #expect(try database.number("select count(*) from source") == 3)
    }

    @Test func `the oldest go until the file is small enough`() throws {
        let (path, reports) = try makeCentral()
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size]
        let limit = Int64(try #require(size as? Int)) * 4 / 5
        let summary = try pruneStore(path: path, toBytes: limit)
        #expect(summary.deletedCount > 0 && summary.deletedCount < 300)
        #expect(summary.bytesAfter <= limit)
        let kept = try ReportStore.open(path: path).reports(ReportFilter())
        let newest = reports.sorted { $0.start > $1.start }.prefix(kept.count)
        #expect(Set(kept) == Set(newest))
        #expect(try pruneStore(path: path, toBytes: limit).deletedCount == 0)
        try expectSound(path)
    }

    /// Before, the whole file was written anew, in memory, while other processes waited.
    @Test func `pruning returns free pages without writing the file anew`() throws {
        let (path, reports) = try makeCentral()
        let database = try RawDatabase(path)
        #expect(try database.number("pragma auto_vacuum") == 2)
        let middle = reports.map(\.start).sorted()[150]
        let summary = try pruneStore(path: path, startedBefore: middle)
        #expect(summary.bytesAfter < summary.bytesBefore)
        #expect(try database.number("pragma freelist_count") == 0)
        try expectSound(path)
    }

    /// A store that was made before stores were made so.
    @Test func `a store whose pages cannot be returned is written anew once`() throws {
        let (path, reports) = try makeCentral()
        // A connection does not notice that another one has changed it.
        func number(_ sql: String) throws -> Int { try RawDatabase(path).number(sql) }
        try RawDatabase(path).query("pragma auto_vacuum = none; vacuum")
        #expect(try number("pragma auto_vacuum") == 0)
        let starts = reports.map(\.start).sorted()
        for pruned in [100, 200] {
            let summary = try pruneStore(path: path, startedBefore: starts[pruned])
            #expect(summary.bytesAfter < summary.bytesBefore)
            #expect(try number("pragma auto_vacuum") == 2)
            #expect(try number("pragma freelist_count") == 0)
        }
        #expect(try ReportStore.open(path: path).status().reportCount == 100)
        try expectSound(path)
    }

    @Test func `nothing but a central store is pruned`() throws {
        let (_, _) = try makeCentral()
        let agent = directory("in/1.sqlite")
        #expect(throws: StoreError.wrongRole(path: agent, expected: .central)) {
            try pruneStore(path: agent, toBytes: 0)
        }
        #expect(throws: StoreError.missing(path: directory("none"))) {
            try pruneStore(path: directory("none"), toBytes: 0)
        }
        #expect(!FileManager.default.fileExists(atPath: directory("none")))
    }

    @Test(arguments: [
        "update stack set is_truncated = not is_truncated where id = 3": "stack 3 was changed",
        "update image set path = '/opt/other' where id = 1": "image 1 was changed",
        "update function set file = 'x' where id = 1": "function 1 was changed",
        "update location set kind = 2 where id = 5 and kind <> 2": "location 5 was changed",
        "delete from stack where id = 2": "refers to stack 2, which is missing",
        "update report set verdict = 17 where seq = 1": "17 is not a StallVerdict",
        "update report set samples = x'ff' where seq = 1": "not a list of samples",
        "delete from label where id = 1": "names a label that is missing",
    ])
    func `a check finds what is wrong`(change: String, fault: String) throws {
        var generator = ReportGenerator(seed: 4)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        for _ in 0..<20 {
            let report = generator.report()
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.close()
        #expect(try checkStore(path: path).isEmpty)
        try RawDatabase(path).query(change)
        let faults = try checkStore(path: path)
        #expect(faults.contains { $0.description.contains(fault) }, "\(faults)")
    }
}
