import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: parts add up to the whole, one wrong clock spoils no answer, and an answer is of the stores that were named.
/// Method: small stores made for one mistake each; the answers of commands and of both ways to rank.
@Suite struct NumbersThatDecideTests {
    private func stallctl(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try Oracle.stallctl(arguments, in: directory)
    }

    private func objects(_ text: String) throws -> [[String: Any]] {
        try Oracle.objects(text)
    }

    private func ranking(
        _ path: String, _ key: GroupKey, exactLimit: Int, _ filter: ReportFilter = ReportFilter()
    ) throws -> Ranking {
        var question = RankingQuestion(
            store: try ReportStore.open(path: path), filter: filter, by: key)
        question.exactLimit = exactLimit
        return try question.ranking(by: .total, limit: 100)
    }

    // MARK: Stores

    @Test(arguments: [
        ["list"], ["tree"], ["export", "--format", "csv"], ["show", "latest"], ["check"],
        ["report"], ["why", "latest"],
    ])
    func `a command of one store refuses two`(words: [String]) throws {
        try withTemporaryDirectory { directory in
            for (name, number) in [("a", UInt64(1)), ("b", 2)] {
                try SampleReports.writeStore(
                    at: directory.appending(path: name), [SampleReports.report(number)])
            }
            let found = try stallctl(words + ["--store", "a", "--store", "b"], in: directory)
            #expect(found.status == 64 && found.output == "", "\(words)")
            #expect(found.errors.contains("needs one --store; there were 2"), "\(found.errors)")
        }
    }

    @Test func `what top suggests next leads to the store that has it`() throws {
        try withTemporaryDirectory { directory in
            for (name, number, length) in [("a", UInt64(1), 9000), ("b", 2, 500)] {
                let run = SampleReports.run(host: name, number: 900 + number)
                try SampleReports.writeStore(
                    at: directory.appending(path: name),
                    [SampleReports.report(number, run: run, lasting: length)], run: run)
            }
            for stores in [["a", "b"], ["b", "a"]] {
                let options = stores.flatMap { ["--store", $0] }
                let lines = try stallctl(["top"] + options, in: directory).output
                    .split(separator: "\n").map(String.init)
                let next = try #require(lines.first { $0.hasPrefix("Next: stallctl ") })
                #expect(next.hasSuffix(" --store a") && next.contains("show "))
                #expect(lines.last == "      stallctl trend " + options.joined(separator: " "))
                let words = next.split(separator: " ").dropFirst(2).map(String.init)
                #expect(try stallctl(words, in: directory).status == 0)
            }
        }
    }

    // MARK: Sums

    @Test func `a function of two images with one name counts a stall once`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let frames = [
                SampleReports.frame("save()", offset: 0x10, kind: .interrupted),
                SampleReports.frame("save()", image: "/opt/photos/plugin.so", offset: 0x20),
                SampleReports.frame("open()", offset: 0x30), SampleReports.frame("main"),
            ]
            let reports = (1...3).map { number in
                SampleReports.report(
                    UInt64(number), lasting: 1000,
                    samples: [
                        SampleReports.sample(at: 250, for: 500, frames),
                        SampleReports.sample(at: 750, for: 500, Array(frames[1...])),
                    ])
            }
            try SampleReports.writeStore(at: directory.appending(path: "agent"), reports)
            _ = try ingest([path("agent")], into: path("central"))
            for limit in [0, 5000] {
                let found = try ranking(path("central"), .inclusive, exactLimit: limit)
                let save = try #require(found.groups.first { $0.title == "save()" })
                #expect(save.count == 3 && save.total == .seconds(3))
                for group in found.groups {
                    #expect(group.count <= 3 && group.total <= found.totalLost, "\(group.title)")
                }
            }
        }
    }

    /// The last stall is at 10:00 UTC: its day's noon is after the last bucket.
    @Test func `a trend from roll-ups has the newest day`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let reports = (0..<20).map { day in
                SampleReports.report(
                    UInt64(day) + 1, startingAfter: Int64(day) * 86_400 - 4 * 3600)
            }
            try SampleReports.writeStore(at: directory.appending(path: "agent"), reports)
            _ = try ingest([path("agent")], into: path("central"))
            for limit in [0, 5000] {
                let found = try ranking(path("central"), .signature, exactLimit: limit)
                let group = try #require(found.groups.first)
                #expect(group.trend.reduce(.zero) { $0 + $1.total } == group.total)
                #expect(group.trend.reduce(0) { $0 + $1.count } == group.count)
            }
        }
    }

    @Test func `a time that begins within a pruned day is said to be short`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let reports = (0..<3).map {
                SampleReports.report(UInt64($0) + 1, startingAfter: Int64($0) * 86_400)
            }
            try SampleReports.writeStore(at: directory.appending(path: "agent"), reports)
            _ = try ingest([path("agent")], into: path("central"))
            _ = try pruneStore(
                path: path("central"),
                keeping: Retention(
                    reportsSince: UnixTime(
                        microseconds: SampleReports.noon.microseconds + 100_000_000_000)),
                grouper: DefaultGrouper())
            func top(since: String) throws -> ProgramResult {
                try stallctl(["top", "--store", "central", "--since", since], in: directory)
            }
            #expect(try top(since: "2024-11-21T13:00Z").errors.contains("2024-11-21 were pruned"))
            #expect(try top(since: "2024-11-21T00:00Z").errors == "")
            #expect(try top(since: "2024-11-23T01:00Z").errors == "")
        }
    }

    // MARK: Clocks

    @Test(arguments: [false, true])
    func `a machine that booted in 1970 spoils no trend`(isCentral: Bool) throws {
        try withTemporaryDirectory { directory in
            let reports =
                (0..<40).map { day in
                    SampleReports.report(UInt64(day) + 1, startingAfter: Int64(day) * 86_400)
                } + [SampleReports.report(99, startingAfter: -1_732_197_000)]
            let agent = directory.appending(path: "agent.sqlite")
            try SampleReports.writeStore(at: agent, reports)
            let store = isCentral ? directory.appending(path: "central").path : agent.path
            if isCentral { _ = try ingest([agent.path], into: store) }
            for unit in ["day", "hour"] {
                let trend = try stallctl(
                    ["trend", "--json", "--by", unit, "--store", store], in: directory)
                #expect(trend.status == 0, "\(trend.errors)")
                let rows = try objects(trend.output)
                #expect(rows.count < 2000)
                #expect(rows.reduce(0) { $0 + ($1["count"] as? Int ?? 0) } == 41)
                for (row, next) in zip(rows, rows.dropFirst()) {
                    #expect(row["end"] as? String == next["begin"] as? String)
                }
            }
            let text = try stallctl(["trend", "--store", store], in: directory)
            #expect(text.output.contains(" ...") && text.output.contains("1970"))
            let group = try #require(
                try objects(stallctl(["top", "--json", "--store", store], in: directory).output)
                    .first)
            let parts = try #require(group["trend_ms"] as? [Double])
            #expect(parts.count == 8 && parts.allSatisfy { $0 > 0 }, "\(parts)")
            #expect(parts.reduce(0, +) == group["total_ms"] as? Double)
        }
    }
}
