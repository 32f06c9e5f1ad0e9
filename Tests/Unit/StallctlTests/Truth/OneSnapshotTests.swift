import ArgumentParser
import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: what a command answers is true of one instant, whoever prunes the store meanwhile.
/// Method: a prune between two queries of one question, in the same process; another one has the store open, so that
/// neither waits for the other.
@Suite struct OneSnapshotTests {
    private func withStores(
        _ body: (_ paths: [String], _ prune: @escaping () throws -> Void) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var writers: [Ingest] = []
            for (name, host) in [("a", "h1"), ("b", "h2")] {
                let run = SampleReports.run(host: host, number: host == "h1" ? 901 : 902)
                try SampleReports.writeStore(
                    at: directory.appending(path: name + "-agent"),
                    (1...3).map {
                        SampleReports.report($0 + (name == "a" ? 0 : 10), run: run, lasting: 1000)
                    }, run: run)
                let writer = try Ingest(into: path(name), grouper: DefaultGrouper())
                #expect(try writer.run([path(name + "-agent")]).addedCount == 3)
                writers.append(writer)
            }
            try body(["a", "b"].map(path)) {
                for name in ["a", "b"] {
                    _ = try pruneStore(
                        path: path(name),
                        keeping: Retention(
                            reportsSince: UnixTime(microseconds: 1_900_000_000_000_000)),
                        grouper: DefaultGrouper())
                }
            }
            for writer in writers { try writer.close() }
        }
    }

    private func stores(_ paths: [String]) throws -> [any QueryableStore] {
        [try ReportStore.open(path: paths[0]), try MergedStore(paths: paths)]
    }

    @Test(arguments: [0, 1])
    func `an example is there when the next query asks for it`(number: Int) throws {
        try withStores { paths, prune in
            let store = try stores(paths)[number]
            try store.consistently {
                let ranking = try RankingQuestion(store: store).ranking(by: .total, limit: 10)
                let example = try #require(ranking.groups.first?.example)
                try prune()
                #expect(try store.reports(idPrefix: example.description).count == 1)
                #expect(try store.status().reportCount == (number == 0 ? 3 : 6))
                #expect(try store.prunedBefore() == nil)
            }
            #expect(try store.status().reportCount == 0)
            #expect(try store.prunedBefore() != nil)
            // What it throws is thrown as it is, and the store answers afterwards.
            #expect(throws: CancellationError.self) {
                try store.consistently { throw CancellationError() }
            }
            #expect(try store.status().reportCount == 0)
        }
    }

    @Test(arguments: [0, 1])
    func `a ranking is of one instant`(number: Int) throws {
        try withStores { paths, prune in
            let store = try stores(paths)[number]
            // The store has its groups by other rules: every report is read, after its rules were.
            var question = RankingQuestion(
                store: store,
                rules: try GroupingRules("skip function noFunctionHasThisName", file: "test"))
            question.exactLimit = 0
            var isPruned = false
            question.noteOtherRules = {
                do { try prune() } catch { Issue.record(error) }
                isPruned = true
            }
            let ranking = try question.ranking(by: .total, limit: 10)
            #expect(isPruned)
            #expect(ranking.groups.map(\.count).reduce(0, +) == (number == 0 ? 3 : 6))
        }
    }

    @Test func `a trend is of one instant`() throws {
        try withStores { paths, prune in
            let question = TrendQuestion(
                RankingQuestion(store: try ReportStore.open(path: paths[0])), unit: .hour
            ) { first, last, unit in
                try prune()
                return try .utc(from: first, through: last, in: unit)
            }
            #expect(try question.trend().totals.count == 3)
        }
    }

    /// What came between them would be on one side only.
    @Test func `both sides of a comparison are of one instant`() throws {
        try withStores { paths, prune in
            for stores in [[paths[0]], paths] {
                let sides = try ComparedQuestion.both(
                    ["1.0", "..2100-01-01"], stores: stores, filters: .parse([]),
                    grouping: .parse([])
                ).map(\.question.store)
                try sides.consistently {
                    let count = try sides[0].status().reportCount
                    if stores.count == 1 { try prune() }
                    #expect(try sides[1].status().reportCount == count)
                }
            }
        }
    }
}
