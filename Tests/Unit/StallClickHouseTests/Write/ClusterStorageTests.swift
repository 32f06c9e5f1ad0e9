import StallAnalysis
import StallClickHouse
import TestSupport
import Testing

@testable import StallCollector
@testable import StallModel
@testable import StallQuery

/// Goal: a sender is told that its batch is in once all shards have it, and never before; a failure is told to all whose
/// batches went together. Method: a played cluster notes what it is told.
@Suite struct ClusterStorageTests {
    let played = PlayedCluster()
    private let writer = CollectorToken(hash: [], right: .write, apps: ["photos"])

    private func storage(seconds: @escaping () -> Double = { 0 }) throws -> ClusterStorage {
        let cluster = try played.cluster()
        return ClusterStorage(
            StagedIngest(cluster, pause: { _ in }), SourcePositions(cluster), seconds: seconds)
    }

    /// Reports of a store, as a push has them.
    private func batch(
        _ seed: UInt64, count: Int64 = 20
    ) -> (range: PushRange, rows: ClusterStorage.Rows, token: CollectorToken) {
        var generator = ReportGenerator(seed: seed)
        let store = UniqueID((seed, seed))
        var rows = ClusterStorage.Rows(apps: ["photos"])
        for number in 1...count {
            let report = PortableReport(
                report: generator.report(state: .ended),
                origin: ReportOrigin(store: store, seq: number, revision: number),
                images: generator.images)
            rows.rows.append((Int(number), .report(report)))
        }
        return (PushRange(store: store, from: 1, through: count), rows, writer)
    }

    @Test func `a batch is acknowledged when all shards have it, its position last`() throws {
        let outcomes = try storage().take([batch(1)])
        #expect(outcomes == [.taken(through: 20, added: 20, changed: 0, unknown: 0)])
        #expect(Set(played.rows(of: "report_local")).count == 20)
        #expect(played.inserts.suffix(2).map(\.table) == ["source", "source"])
        #expect(Set(played.inserts.suffix(2).map(\.host)) == ["one", "two"])
    }

    @Test func `batches that wait together are one copy`() throws {
        let storage = try storage()
        let outcomes = storage.take([batch(1), batch(2), batch(3)])
        #expect(outcomes.count == 3)
        for outcome in outcomes {
            #expect(outcome == .taken(through: 20, added: 20, changed: 0, unknown: 0))
        }
        #expect(Set(played.rows(of: "report_local")).count == 60)
        let positions = played.inserts.filter { $0.table == "source" }
        #expect(positions.map(\.rows.count) == [3, 3])
    }

    @Test func `where a shard takes nothing, nothing is acknowledged and no position is written`()
        throws
    {
        played.failures = Set(10...10_000)
        let outcomes = try storage().take([batch(1), batch(2)])
        for outcome in outcomes {
            guard case .unavailable = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
        #expect(played.rows(of: "source").isEmpty)
    }

    @Test func `a copy that fails once is made again as a whole`() throws {
        played.failures = [24]
        let outcomes = try storage().take([batch(1)])
        #expect(outcomes == [.taken(through: 20, added: 20, changed: 0, unknown: 0)])
        #expect(Set(played.rows(of: "report_local")).count == 20)
        #expect(played.rows(of: "source").count == 2)
    }

    @Test func `a store that has rows of another app is not for the token`() throws {
        var row = TabSeparatedWriter()
        row.add(UniqueID((1, 1)))
        row.add("calendar")
        row.endRow()
        played.answers["from source_app"] = row.bytes
        let outcomes = try storage().take([batch(1), batch(2)])
        guard case .foreign? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(outcomes.last == .taken(through: 20, added: 20, changed: 0, unknown: 0))
        #expect(Set(played.rows(of: "report_local")).count == 20)
    }

    /// `stallctl regroup --rules` gave the cluster rules that a collector has no file of.
    @Test func `batches are grouped by the rules of the cluster`() throws {
        let text = "skip module Telemetry\n"
        let rules = try GroupingRules(text, file: "mine.rules")
        played.answers["from grouping final"] = Array("\(rules.hash)\t0\n".utf8)
        let storage = try storage()
        // An older stallctl did not keep the text.
        guard case .unavailable(let reason)? = storage.take([batch(1)]).first else {
            Issue.record("taken by other rules than the cluster's")
            return
        }
        #expect(reason.contains("run stallctl regroup on it first"))
        #expect(played.inserts.isEmpty)
        played.answers["from rules_text final"] = Array("skip module Telemetry\\n\n".utf8)
        for seed in [1, 2] as [UInt64] {
            let outcomes = storage.take([batch(seed)])
            #expect(outcomes == [.taken(through: 20, added: 20, changed: 0, unknown: 0)])
        }
        #expect(Set(played.rows(of: "report_local")).count == 40)
    }

    @Test func `days are added up again once a minute, and at the end`() throws {
        var seconds = 0.0
        let storage = try storage { seconds }
        _ = storage.take([batch(1)])
        played.answers["from rollup_day final where is_fresh = 0"] = Array("19675\n".utf8)
        #expect(!played.statements.contains { $0.sql.contains("insert into rollup_local") })
        seconds = 61
        _ = storage.take([batch(2)])
        let sums = played.statements.filter { $0.sql.contains("insert into rollup_local") }
        #expect(Set(sums.map(\.host)) == ["one", "two"])
        storage.close()
        #expect(played.statements.count { $0.sql.contains("insert into rollup_local") } == 4)
    }
}
