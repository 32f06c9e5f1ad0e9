import Foundation
import StallAnalysis
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: a rate is of the stalls of loops whose watched time is recorded, over that time, whatever else is in the store; and
/// each engine and each way of the reports into the store gives the same.
/// Method: one app whose agent records watched time for two hours, and one whose agent does not; stores, lines, orders.
@Suite struct RateTests {
    private let directory = try! TemporaryDirectory()

    private func url(_ name: String) -> URL { URL(fileURLWithPath: directory(name)) }

    /// Three stalls of 1 s in two watched hours, and five of 60 s in a run without watched time.
    private func writeStores() throws {
        let (timed, untimed) = (
            SampleReports.run(number: 900), SampleReports.run(version: "2.4.0", number: 901)
        )
        func reports(_ first: UInt64, _ count: UInt64, _ run: ProcessRun, _ length: Int)
            -> [StallReport]
        {
            (0..<count).map {
                SampleReports.report(
                    first + $0, run: run, startingAfter: Int64($0) * 60, lasting: length)
            }
        }
        try SampleReports.writeStore(
            at: url("timed.sqlite"), reports(1, 3, timed, 1000), run: timed)
        try SampleReports.writeStore(
            at: url("untimed.sqlite"), reports(11, 5, untimed, 60_000), run: untimed)
        let agent = try AgentStore(path: directory("timed.sqlite"), run: timed)
        for minute in 0..<120 {
            try agent.record(
                LoopExposure(
                    run: timed, loop: "main", threshold: .milliseconds(250),
                    start: UnixTime(
                        microseconds: SampleReports.noon.microseconds + Int64(minute) * 60_000_000),
                    watched: .seconds(60), busy: .seconds(6)))
        }
        try agent.close()
    }

    private func ingest(_ names: [String], into name: String = "central.sqlite") throws {
        let ingest = try Ingest(into: directory(name), grouper: DefaultGrouper())
        let summary = try ingest.run(names.map { directory($0) })
        #expect(summary.skippedCount == 0)
        try ingest.close()
    }

    private func rankings(_ name: String, by group: GroupKey = .signature) throws -> [Ranking] {
        let store = try ReportStore.open(path: directory(name))
        let question = RankingQuestion(store: store, by: group)
        let exact = try question.exactRanking(by: .rate)
        guard try store.rulesHash() != nil else { return [exact] }
        var large = question
        large.exactLimit = 0
        return [exact, try large.ranking(by: .rate, limit: 20)]
    }

    @Test(arguments: [["timed.sqlite", "untimed.sqlite"], ["untimed.sqlite", "timed.sqlite"]])
    func `stalls of runs without watched time are in no rate`(names: [String]) throws {
        try writeStores()
        try ingest(names)
        for ranking in try rankings("central.sqlite") {
            let row = try #require(ranking.rows.first)
            #expect(ranking.rows.count == 1)
            #expect(row.count == 8 && row.totalMs == 303_000)
            #expect(row.watchedCount == 3 && row.watchedTotalMs == 3000)
            #expect(row.rateMsPerHour == 1500)
            let text = TopView(
                ranking: ranking, limit: 20, frameCount: 2,
                terminal: Terminal(
                    columns: nil, usesColor: false, isInteractive: false, timeZone: .gmt,
                    now: SampleReports.noon)
            ).lines.joined(separator: "\n")
            #expect(text.contains("in 2h 00m watched (1.5 s/h)"), "\(text)")
            #expect(
                text.contains(
                    "Rates cover the 3 stalls (3.0 s lost) in loops with recorded watched time, not the other 5 stalls (5m 00s)."
                ), "\(text)")
        }
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    /// A process whose first stalls are imported before its first minute is over.
    @Test func `watched time that comes later counts what is there already`() throws {
        try writeStores()
        let run = SampleReports.run(version: "2.4.0", number: 901)
        try ingest(["timed.sqlite", "untimed.sqlite"])
        let agent = try AgentStore(path: directory("untimed.sqlite"), run: run)
        try agent.record(
            LoopExposure(
                run: run, loop: "main", threshold: .milliseconds(250), start: SampleReports.noon,
                watched: .seconds(3600)))
        try agent.close()
        for _ in 1...2 { try ingest(["untimed.sqlite"]) }
        for ranking in try rankings("central.sqlite") {
            #expect(ranking.rows.first?.watchedCount == 8)
            #expect(ranking.rows.first?.rateMsPerHour == 101_000)
        }
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    @Test func `a version without watched time is compared without rates`() throws {
        try writeStores()
        try ingest(["timed.sqlite", "untimed.sqlite"])
        for ranking in try rankings("central.sqlite", by: .version) {
            let rates = Dictionary(
                uniqueKeysWithValues: ranking.rows.map { ($0.title, $0.rateMsPerHour) })
            #expect(rates == ["photos 2.3.0": 1500, "photos 2.4.0": nil])
        }
    }

    @Test func `of two sides that were watched, stalls of other runs are not compared`() throws {
        let watched = Duration.seconds(3600)
        func side(_ timed: Int, _ untimed: Int) -> ComparedSide {
            var (all, part) = (StallTotals(), StallTotals())
            for _ in 0..<timed + untimed { all.add(.seconds(1)) }
            for _ in 0..<timed { part.add(.seconds(1)) }
            let group = ReportGroup(signature: 1, family: 1, title: "a", frames: ["a"])
            return ComparedSide(
                groups: [
                    StallAggregate(
                        group, totals: all, watched: part, first: SampleReports.noon,
                        last: SampleReports.noon)
                ], watched: watched, runs: .unknown(reason: "not asked"))
        }
        let same = Comparison(side(20, 0), side(20, 400))
        #expect(same.ratio.value == 1 && same.change == .unclear && !same.exceeds(1.2))
        #expect(same.first.count == 20 && same.second.count == 420)
        #expect(same.compared.second.count == 20)
        // What one side has only in runs without watched time is not new.
        let untimed = Comparison(side(0, 20), side(20, 0))
        #expect(untimed.groups[0].change == .unclear && !untimed.exceeds(1.2))
        let neither = Comparison(side(0, 20), side(0, 20))
        #expect(neither.ratio.value.isNaN && neither.change == .unclear)
    }

    @Test func `a watched stretch is split where a range ends in it`() throws {
        try writeStores()
        let store = try ReportStore.open(path: directory("timed.sqlite"))
        let cut = UnixTime(microseconds: SampleReports.noon.microseconds + 3_615_000_000)
        var (before, after) = (ReportFilter(), ReportFilter())
        (before.until, after.since) = (cut, cut)
        let parts = try [before, after].map { try store.watchedLoops($0, withLengths: false) }
        #expect(parts[0].map(\.watched) == [.seconds(3615)])
        #expect(parts[1].map(\.watched) == [.seconds(3585)])
        #expect(parts[0].map(\.busy) == [.milliseconds(361_500)])
        #expect(try store.exposure(after).first?.start == cut)
    }

    /// `NULL` for "nothing was pruned" was once read as 1970: everything since then counted as pruned.
    @Test func `a small central store is ranked from its reports`() throws {
        try writeStores()
        try ingest(["timed.sqlite"])
        let store = try ReportStore.open(path: directory("central.sqlite"))
        #expect(try store.prunedBefore() == nil)
        let question = RankingQuestion(store: store, by: .signature)
        #expect(try !question.lacksReports)
    }
}

/// Goal: stalls with truncated stacks, and stalls that waited for something else, are in one group with one name,
/// whichever engine ranks and in whatever order they came.
/// Method: stores of complete stacks, truncated ones, and ones that waited for something else, in all orders.
@Suite struct OneGroupTests {
    private static let syncing =
        [
            SampleReports.frame(
                "fsync", image: SampleReports.libc, offset: 0xf83a0, kind: .interrupted)
        ]
        + SampleReports.waiting.drop { $0.imagePath == SampleReports.libc }
    private static let cut = Array(
        SampleReports.waiting.prefix { $0.imagePath == SampleReports.libc }
            + SampleReports.waiting.drop { $0.imagePath == SampleReports.libc }.prefix(1))

    @Test(arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    func `a group has one name in every order`(order: [Int]) throws {
        let directory = try TemporaryDirectory()
        let kinds = [(SampleReports.waiting, 2), (Self.syncing, 3), (Self.cut, 6)]
        for (number, (frames, count)) in kinds.enumerated() {
            let run = SampleReports.run(number: 900 + UInt64(number))
            let reports = (0..<count).map {
                SampleReports.report(
                    UInt64(number * 100 + $0 + 1), run: run, startingAfter: Int64($0),
                    lasting: 1000,
                    samples: [SampleReports.sample(at: 125, for: 1000, frames)])
            }
            try SampleReports.writeStore(
                at: URL(fileURLWithPath: directory("\(number).sqlite")), reports, run: run)
        }
        let ingest = try Ingest(into: directory("central.sqlite"), grouper: DefaultGrouper())
        for number in order { _ = try ingest.run([directory("\(number).sqlite")]) }
        try ingest.close()
        let store = try ReportStore.open(path: directory("central.sqlite"))
        let question = RankingQuestion(store: store, by: .signature)
        let exact = try question.exactRanking(by: .total)
        #expect(exact.rows.map(\.count) == [11])
        for limit in [nil, 1] {
            let near = try #require(
                try question.fromRollUps(by: .total, limit: limit, withDays: true))
            #expect(near.rows.map(\.count) == [11])
            #expect(near.rows.map(\.title) == exact.rows.map(\.title))
            #expect(near.rows.map(\.wait) == exact.rows.map(\.wait))
            #expect(near.rows.map(\.totalMs) == exact.rows.map(\.totalMs))
        }
        #expect(exact.rows.first?.wait == "disk")
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }
}

/// A directory that goes with the test.
private final class TemporaryDirectory {
    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func callAsFunction(_ name: String) -> String { url.appending(path: name).path }
}
