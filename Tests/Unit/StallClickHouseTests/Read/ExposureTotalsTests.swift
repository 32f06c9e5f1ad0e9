import StallClickHouse
import StallModel
import StallQuery
import Testing

/// Goal: what rankings say of watched time and of stalls without a report is of the loops that are asked for, however long.
/// Method: a played cluster.
@Suite struct ExposureTotalsTests {
    let played = PlayedCluster()

    private func store(answering question: String, _ answer: String) throws -> ClusterStore {
        played.answers["select 'version'"] = Array(
            "version\t\(ClickHouseMigration.newest)\t0\ngrouping\t42\t0\nshards\t0\t0\n".utf8)
        played.answers[question] = Array(answer.utf8)
        return try ClusterStore(played.cluster().server)
    }

    private func filter(app: String) -> ReportFilter {
        var filter = ReportFilter()
        (filter.apps, filter.loops) = ([app], ["main"])
        return filter
    }

    private func statement(_ part: String) throws -> String {
        try #require(played.statements.last { $0.sql.contains(part) }).sql
    }

    @Test func `watched time is longer than nanoseconds of 64 bits`() throws {
        let store = try store(
            answering: "from exposure", "app\t1.0\thost\tmain\t20000000000\t1500000000\n")
        let times = try store.watchedTimes(filter(app: "app"))
        #expect(times.map(\.watched) == [.seconds(20_000_000_001) + .milliseconds(500)])
        #expect(times.map(\.host) == ["host"])
        let asked = try statement("from exposure")
        #expect(asked.contains("app in ('app')") && asked.contains("loop_name in ('main')"))
    }

    /// A cluster adds up without the limits that one stretch has.
    @Test func `a loop's sums beyond what a stretch may have are read`() throws {
        let run = String(repeating: "r", count: 16)
        played.answers["from process_run"] = Array(
            "\(run)\tapp\t1.0\t\thost\t1\tboot\t1\t1\t\\N\tiPhone14,2\n".utf8)
        played.answers["select distinct run, hash"] = Array("\(run)\t7\tmain\t250000000\n".utf8)
        let largest = "\(Int64.max)"
        let sums = Array(repeating: largest, count: 6).joined(separator: "\t")
        let store = try store(
            answering: "group by loop)",
            "7\t1700000000000000\t\(sums)\t[3,9]\t[1,\(LengthHistogram.largestCount)]\n")
        let loops = try store.watchedLoops(ReportFilter(), withLengths: true)
        #expect(loops.map(\.watched) == [.nanoseconds(Int64.max)])
        #expect(loops.map(\.busy) == loops.map(\.watched))
        #expect(loops.map(\.microStallCount) == [.max])
        #expect(loops.map(\.threshold) == [.milliseconds(250)])
        #expect(loops.first?.lengths.counts == [3: 1, 9: LengthHistogram.largestCount])
    }

    @Test func `stalls without a report are those of the loops that are asked for`() throws {
        let store = try store(
            answering: "from suppression",
            "7\t0\t5\t9\n7\t1\t9223372036854775807\t-9223372036854775808\n7\t9\t1\t1\n")
        let totals = try store.suppressedTotals(filter(app: "o'app"))
        // A reason that this version does not know is none of its own.
        #expect(totals.map(\.reason) == [.place, .hour])
        #expect(totals.map(\.count) == [5, 1_000_000_000_000])
        #expect(totals[1].total == .nanoseconds(-320_000_000_000_000_000))
        let asked = try statement("from suppression")
        #expect(asked.contains("name in ('main') and run in (select uuid from"))
        #expect(asked.contains("app in ('o\\'app')"))
        _ = try store.suppressedTotals(ReportFilter())
        #expect(try statement("from suppression").contains("where 1 group by loop"))
    }
}
