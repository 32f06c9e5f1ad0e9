import StallClickHouse
import StallModel
import Testing

/// Goal: no reader misses a day, and what is read no more does not stay for ever.
/// Method: a played cluster that says how many rows of which generation there are.
@Suite struct RollUpDaysTests {
    let played = PlayedCluster()
    let time = UnixTime(microseconds: 1_763_894_400_000_000)

    /// What is deleted after day 20,405 was added up again.
    private func deleted(_ answer: String) throws -> [String] {
        played.answers["as is_old"] = Array(answer.utf8)
        try RollUpDays(played.cluster()).renew([20_405], at: time)
        return played.statements.map(\.sql).filter { $0.hasPrefix("alter table") }
    }

    @Test func `a day's totals count when every shard has those of each kind`() throws {
        #expect(try deleted("").isEmpty)
        let sums = played.statements.map(\.sql).filter { $0.hasPrefix("insert into") }
        for table in ["rollup_local", "host_rollup_local", "cohort_rollup_local"] {
            #expect(sums.filter { $0.hasPrefix("insert into \(table) ") }.count == 2)
        }
        #expect(
            played.rows(of: "rollup_day")
                == Array(
                    repeating: "20405\t\(time.microseconds)\t1\t\(time.microseconds)", count: 2))
    }

    @Test func `generations that are read no more are deleted when they are as many as the others`()
        throws
    {
        #expect(try deleted("20405\t700\t5\t9\n20406\t800\t0\t2\n").isEmpty)
        let statements = try deleted("20405\t700\t5\t9\n20406\t800\t1\t3\n20407\t0\t0\t0\n")
        #expect(statements.count == 6)
        #expect(
            statements[0]
                == "alter table rollup_local delete where day = 20405 and generation < 700 or day = 20406 and generation < 800"
        )
    }
}
