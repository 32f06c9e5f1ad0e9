import StallClickHouse
import StallHTTP
import StallModel
import Testing

/// Goal: shards that differ are found by content, get each other's rows, and take stores again from the earlier position.
/// Method: a played cluster whose shards answer differently.
@Suite struct ClusterRepairTests {
    let played = PlayedCluster()

    private func answer(_ question: String, _ rows: String) {
        played.answers[question] = Array(rows.utf8)
    }

    @Test func `as many rows with other contents are a fault`() throws {
        played.answersOfHost["two"] = ["from `loop` final": Array("3\t8\n".utf8)]
        answer("from `loop` final", "3\t7\n")
        answer("from `stack` final", "4\t7\n")
        let faults = try ClusterCheck.faults(of: played.cluster())
        #expect(faults == ["loop: some of the 3 rows differ between the shards"])
    }

    @Test func `rows that a shard lacks are given to it`() throws {
        played.answersOfHost["two"] = ["from `loop` final": Array("2\t8\n".utf8)]
        answer("select count(), sum(cityHash64(hash)) from `loop`", "3\t7\n")
        answer("select * from `loop` final", "a\tb\n")
        try ClusterRepair(played.cluster(), pause: { _ in }).run()
        #expect(played.rows(of: "loop", on: "two") == ["a\tb"])
        #expect(played.rows(of: "stack").isEmpty)
    }

    @Test func `a store is taken again from the earlier position`() throws {
        let store = "aaaaaaaaaaaaaaaa"
        answer("from `source` final", "1\t7\n")
        answer("select store, revision from source", "\(store)\t9\n")
        played.answersOfHost["two"] = [
            "from `source` final": Array("1\t8\n".utf8),
            "select store, revision from source": Array("\(store)\t5\n".utf8),
        ]
        answer("and revision = 5 limit 1", "the row of two\n")
        try ClusterRepair(played.cluster(), pause: { _ in }).run()
        let deletions = played.statements.filter { $0.sql.hasPrefix("alter table source delete") }
        #expect(deletions.map(\.host) == ["one", "two"])
        #expect(played.rows(of: "source", on: "one") == ["the row of two"])
        #expect(played.rows(of: "source", on: "two") == ["the row of two"])
    }

    @Test func `a report on two shards is deleted from the one that is not its own`() throws {
        let id = UniqueID((7, 7))
        var row = TabSeparatedWriter()
        row.add(id)
        row.add(Int64(5))
        row.endRow()
        answer("group by app, part", "a\t5\t2\n")
        played.answers["group by id having"] = row.bytes
        let cluster = try played.cluster()
        #expect(try ClusterCheck.faults(of: cluster) == ["1 reports are on several shards"])
        try ClusterRepair(cluster, pause: { _ in }).run()
        let deletions = played.statements.filter { $0.sql.contains("report_local delete") }
        #expect(deletions.map(\.host) == [cluster.shard(of: id) == 0 ? "two" : "one"])
    }
}
