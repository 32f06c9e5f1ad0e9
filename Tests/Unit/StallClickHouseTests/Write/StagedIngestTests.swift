import Foundation
import StallArchive
import StallClickHouse
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

/// Goal: each report goes to one shard, what reports share to all, and a position only behind them; sent again, all of it
/// is the same. Method: a played cluster notes what it is told.
@Suite struct StagedIngestTests {
    let played = PlayedCluster()
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    /// An agent's store with 40 reports.
    private func agentStore() throws -> String {
        var generator = ReportGenerator(seed: 3)
        let path = directory.appending(path: "agent.sqlite").path
        let agent = try AgentStore(path: path, run: generator.run)
        for _ in 0..<40 {
            try agent.record(generator.report(state: .ended), images: generator.images)
        }
        try agent.close()
        return path
    }

    private func ingest(_ path: String) throws -> StoreCopy.Summary {
        defer { try? FileManager.default.removeItem(at: directory) }
        let cluster = try played.cluster()
        return try StagedIngest(
            cluster, clock: { UnixTime(microseconds: 1_700_000_100_000_000) }, pause: { _ in }
        ).run(grouper: PlainGrouper()) { staged in
            let ingest = try Ingest(into: staged, grouper: PlainGrouper(), holdsOnlyNews: true)
            _ = try ingest.run([path])
            try ingest.close()
        }.copied
    }

    @Test func `each report goes to one shard`() throws {
        let summary = try ingest(agentStore())
        #expect(summary.reportCount == 40)
        let (one, two) = (
            played.rows(of: "report_local", on: "one"), played.rows(of: "report_local", on: "two")
        )
        #expect(one.count + two.count == 40)
        #expect(one.count > 8 && two.count > 8)
        #expect(Set(one + two).count == 40)
    }

    @Test func `what reports share goes to every shard`() throws {
        _ = try ingest(agentStore())
        for table in ["process_run", "loop", "image", "location", "stack", "signature", "source"] {
            let rows = played.rows(of: table, on: "one")
            #expect(!rows.isEmpty, "\(table)")
            #expect(rows == played.rows(of: table, on: "two"), "\(table)")
        }
    }

    @Test func `the position comes behind all reports, and roll-ups behind the position`() throws {
        _ = try ingest(agentStore())
        let tables = played.inserts.map(\.table)
        let lastReport = try #require(tables.lastIndex(of: "report_local"))
        let position = try #require(tables.firstIndex(of: "source"))
        #expect(lastReport < position)
        let marks = tables.indices.filter { tables[$0] == "rollup_day" }
        #expect(marks.count == 4)
        #expect(marks[1] < tables.firstIndex(of: "report_local")! && marks[2] > position)
    }

    /// Without a pause for the clock: rows must not depend on when they are sent.
    @Test func `a copy that fails half-way is made again as it was`() throws {
        let path = try agentStore()
        // The second shard's share of the reports, after the first's was taken.
        let whole = PlayedCluster()
        let staged = directory.appending(path: "central.sqlite").path
        let ingest = try Ingest(into: staged, grouper: PlainGrouper())
        _ = try ingest.run([path])
        try ingest.close()
        _ = try StagedIngest(whole.cluster(), pause: { _ in }).copy(staged)
        let second = whole.inserts.lastIndex { $0.table == "report_local" }!
        played.failures = [second + 1]
        _ = try StagedIngest(played.cluster(), pause: { _ in }).copy(staged)
        for table in ["report_local", "stack", "source"] {
            #expect(Set(played.rows(of: table)) == Set(whole.rows(of: table)), "\(table)")
        }
        #expect(played.rows(of: "report_local").count > whole.rows(of: "report_local").count)
        #expect(played.rows(of: "source").count == whole.rows(of: "source").count)
        try FileManager.default.removeItem(at: directory)
    }

    @Test func `where no attempt succeeds, no position is written`() throws {
        let path = try agentStore()
        played.failures = Set(20...10_000)
        #expect(throws: ClickHouseError.self) { try ingest(path) }
        #expect(played.rows(of: "source").isEmpty)
    }

    /// A sender waits for all of them: each turn starts a process, and waits for the slowest shard.
    @Test func `what need not wait for other rows is sent together`() throws {
        let staged = directory.appending(path: "central.sqlite").path
        let ingest = try Ingest(into: staged, grouper: PlainGrouper())
        _ = try ingest.run([agentStore()])
        try ingest.close()
        _ = try StagedIngest(played.cluster(), pause: { _ in }).copy(staged, renews: false)
        #expect(played.inserts.count > 24)
        // The cluster; its rules, asked once and told to both; what is shared in three turns; reports; positions, asked and told.
        #expect(played.turnCount <= 10)
        try FileManager.default.removeItem(at: directory)
    }

    @Test func `totals are left to the cluster`() throws {
        let path = directory.appending(path: "staged.sqlite").path
        let ingest = try Ingest(into: path, grouper: PlainGrouper(), holdsOnlyNews: true)
        #expect(try ingest.run([agentStore()]).addedCount == 40)
        try ingest.close()
        let connection = try Connection(to: path, as: path, .readOnly)
        #expect(try connection.prepare("select count(*) from report").number() == 40)
        #expect(try connection.prepare("select count(*) from rollup").number() == 0)
        #expect(try connection.prepare("select count(*) from report_day").number() > 0)
        try FileManager.default.removeItem(at: directory)
    }

    @Test func `an ingest begins behind the positions of the cluster`() throws {
        let path = try agentStore()
        let store = try ReportStore.open(path: path)
        let origins = try store.origins()
        let origin = try #require(origins.values.first)
        let revision = try #require(origins.values.map(\.revision).max())
        var row = TabSeparatedWriter()
        row.add(origin.store)
        row.null()
        for number in [revision, 0, 0] { row.add(number) }
        row.add(origin.store)
        row.endRow()
        played.answers["from source final"] = row.bytes
        #expect(try ingest(path).reportCount == 0)
    }

    @Test func `groups of other rules are refused`() throws {
        played.answers["from grouping final"] = Array("77\t0\n".utf8)
        #expect(throws: ClickHouseError.self) { try ingest(agentStore()) }
        #expect(played.inserts.isEmpty)
    }
}
