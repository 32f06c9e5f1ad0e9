import StallModel
import StallQuery
import Testing

@testable import StallClickHouse

/// Goal: parts of reports have all of them, each once, and are of about one size; a large day is divided.
/// Method: a played cluster says how many there are.
@Suite struct ReportSlicesTests {
    private func parts(
        _ answers: [String: String], _ order: ReportSlices.Order, size: Int
    ) throws -> [String] {
        let played = PlayedCluster()
        for (key, value) in answers { played.answers[key] = Array(value.utf8) }
        var parts: [String] = []
        try ReportSlices(
            server: played.cluster().server, conditions: ReportConditions(ReportFilter()),
            order: order, size: size
        ).forEach {
            parts.append($0.clauses.sql)
            return true
        }
        return parts
    }

    @Test func `small apps are joined, and a large one is divided by days`() throws {
        let parts = try parts(
            [
                "group by app, part":
                    "a\t1\t3\na\t2\t3\nb\t1\t3\nc\t1\t8\nc\t2\t2\nc\t3\t9\nd\t1\t1\n"
            ],
            .stored, size: 10)
        #expect(
            parts == [
                "prewhere app >= 'a' and app <= 'b' where 1",
                "prewhere app >= 'c' and app <= 'c' and day >= 1 and day <= 2 where 1",
                "prewhere app >= 'c' and app <= 'c' and day >= 3 and day <= 3 where 1",
                "prewhere app >= 'd' and app <= 'd' where 1",
            ])
    }

    @Test func `the newest days come first`() throws {
        let parts = try parts(["group by day": "9\t4\n8\t4\n7\t4\n-1\t1\n"], .newestFirst, size: 10)
        #expect(
            parts == [
                "prewhere day >= 8 and day <= 9 where 1",
                "prewhere day >= (-1) and day <= 7 where 1",
            ])
    }

    @Test func `a day of too many reports is divided by time and ids`() throws {
        let (low, high) = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb")
        let parts = try parts(
            [
                "group by day": "1\t30\n",
                "group by slot":
                    "5\t6\t\(high)\t\(high)\n4\t4\t\(low)\t\(low)\n2\t25\t\(low)\t\(high)\n",
            ], .newestFirst, size: 10)
        let slot = "intDiv(start_us - 86400000000, 10000000)"
        let (first, last) = (
            String(repeating: "61", count: 16), String(repeating: "62", count: 16)
        )
        let ids = "id >= unhex('\(first)') and id <= unhex('\(last)')"
        #expect(
            parts == [
                "prewhere day >= 1 and day <= 1 and \(ids) where \(slot) >= 4 and \(slot) <= 5",
                "prewhere day >= 1 and day <= 1 and \(ids) where \(slot) >= 2 and \(slot) <= 2",
            ])
    }

    @Test func `the reports of a loop are in one part`() throws {
        let parts = try parts(
            ["group by app, part": "a\t-5\t8\na\t6\t8\na\t7\t30\nb\t9\t1\n"], .byLoop, size: 10)
        #expect(parts.count == 4)
        #expect(parts[0].contains("loop >= (-5) and loop <= (-5)"))
        #expect(parts[2].contains("loop >= 7 and loop <= 7"))
    }

    @Test func `who has enough is given no more`() throws {
        let played = PlayedCluster()
        played.answers["group by day"] = Array("9\t4\n8\t4\n".utf8)
        var count = 0
        try ReportSlices(
            server: played.cluster().server, conditions: ReportConditions(ReportFilter()),
            order: .newestFirst, size: 4
        ).forEach { _ in
            count += 1
            return false
        }
        #expect(count == 1)
    }
}
