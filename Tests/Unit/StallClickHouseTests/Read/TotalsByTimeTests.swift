import StallClickHouse
import StallModel
import StallQuery
import Testing

/// Goal: what a cluster adds up by steps of time is put into the parts that are asked for, and nothing else is taken for it.
/// Method: a played cluster.
@Suite struct TotalsByTimeTests {
    let played = PlayedCluster()

    private func totals(_ answer: String, hours: [Int64]) throws -> [StallTotals]? {
        played.answers["select 'version'"] = Array(
            "version\t\(ClickHouseMigration.newest)\t0\ngrouping\t42\t0\nshards\t0\t0\n".utf8)
        played.answers["group by slot"] = Array(answer.utf8)
        return try ClusterStore(played.cluster().server).totals(
            ReportFilter(), between: hours.map { UnixTime(microseconds: $0 * 3_600_000_000) })
    }

    @Test func `parts of different length are made of equal steps`() throws {
        // Of 23, 1 and 2 hours: the steps are hours.
        let parts = try #require(
            try totals(
                "0\t2\t30\t20\t0.5\n22\t1\t5\t5\t0\n23\t1\t7\t7\t0\n25\t1\t9\t9\t0\n",
                hours: [1, 24, 25, 27]))
        #expect(parts.map(\.count) == [3, 1, 1])
        #expect(parts.map(\.total.nanoseconds) == [35, 7, 9])
        #expect(parts.map(\.longest.nanoseconds) == [20, 7, 9])
        let asked = try #require(played.statements.last { $0.sql.contains("group by slot") }).sql
        #expect(asked.contains("intDiv(start_us - 3600000000, 3600000000)"))
        #expect(asked.contains("start_us >= 3600000000 and start_us < 97200000000"))
        #expect(asked.contains("verdict in (0)"))
    }

    @Test(arguments: ["-1", "26", "9223372036854775807", "x"])
    func `a step outside of the time is refused`(slot: String) {
        #expect(throws: ClickHouseError.self) {
            try totals("\(slot)\t1\t1\t1\t0\n", hours: [1, 24, 25, 27])
        }
    }

    @Test func `a time without parts is left to others`() throws {
        #expect(try totals("", hours: [5]) == nil)
        #expect(try totals("", hours: []) == nil)
        #expect(try totals("", hours: [5, 5]) == nil)
    }
}
