import Foundation
import StallAnalysis
import StallModel
import StallArchive
import StallIngest
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: a large store, ranked from its roll-ups, gives the same results as a small one, whose reports are read.
/// Method: both rankings of one central store, for every key of roll-ups; reports spread over days and versions.
@Suite struct RollUpRankingTests {
    private func withCentralStore(_ body: (ReportStore) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            var paths: [String] = []
            for (number, version) in ["2.2.9", "2.3.0"].enumerated() {
                let run = SampleReports.run(version: version, number: UInt64(900 + number))
                let reports = (0..<20).map { (index: Int) in
                    var report = SampleReports.report(
                        UInt64(number * 100 + index + 1), run: run,
                        startingAfter: Int64(index) * 40_000, lasting: 300 + index * index * 7,
                        samples: index % 3 == 0
                            ? [SampleReports.sample(at: 125, for: 200, SampleReports.computing)]
                            : nil)
                    if index % 4 == 1 { report.delayedTime = .milliseconds(100 + index) }
                    return report
                }
                let path = directory.appending(path: "\(version).sqlite")
                try SampleReports.writeStore(at: path, reports, run: run)
                paths.append(path.path)
            }
            let central = directory.appending(path: "central.sqlite").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            _ = try ingest.run(paths)
            try ingest.close()
            try body(ReportStore.open(path: central))
        }
    }

    private func days(_ first: UnixTime, _ last: UnixTime) throws -> TimeBuckets {
        try .utc(from: first, through: last, in: .day)
    }

    @Test(arguments: GroupKey.allCases.filter { !$0.needsReports && $0 != .host })
    func `roll-ups rank as reports do`(group: GroupKey) throws {
        try withCentralStore { store in
            let question = RankingQuestion(store: store, filter: ReportFilter(), by: group)
            let exact = try question.exactRanking(by: .total, buckets: days)
            // Of few groups the days are read for those alone.
            for limit in [nil, 1] {
                let near = try #require(
                    try question.fromRollUps(
                        by: .total, limit: limit, withDays: true, buckets: days))
                #expect(near.groups.count == min(limit ?? .max, exact.groups.count))
                #expect(near.buckets == exact.buckets)
                for (near, exact) in zip(near.groups, exact.groups) {
                    expectSame(near, exact)
                }
            }
        }
    }

    private func expectSame(_ near: StallAggregate, _ exact: StallAggregate) {
        #expect(near.title == exact.title && near.group == exact.group)
        #expect(near.count == exact.count && near.total == exact.total)
        #expect(near.max == exact.max && near.causes == exact.causes)
        #expect(near.own == exact.own)
        #expect(abs(near.totals.squares / exact.totals.squares - 1) < 0.032)
        #expect(near.trend.count == exact.trend.count)
        for (near, exact) in zip(near.trend, exact.trend) {
            #expect(near.count == exact.count && near.total == exact.total)
            #expect(near.longest == exact.longest)
        }
    }

    @Test func `sides are compared as their reports are`() throws {
        try withCentralStore { store in
            let filters = ["2.2.9", "2.3.0"].map { version in
                var filter = ReportFilter()
                filter.versions = [version]
                filter.until = UnixTime(
                    microseconds: SampleReports.noon.microseconds
                        + (version == "2.3.0" ? 900_000_000_000 : 500_000_000_000))
                return filter
            }
            func comparison(_ rankings: [Ranking]) -> Comparison {
                let sides = rankings.map {
                    ComparedSide(
                        groups: $0.groups, watched: nil, runs: .unknown(reason: "not asked"))
                }
                return Comparison(sides[0], sides[1])
            }
            let near = comparison(
                try filters.map { filter in
                    let question = RankingQuestion(store: store, filter: filter, by: .signature)
                    return try #require(try question.fromRollUps(by: .total, withDays: false))
                })
            let exact = comparison(
                try filters.map {
                    try RankingQuestion(store: store, filter: $0).exactRanking(by: .total)
                })
            #expect(near.groups.map(\.title) == exact.groups.map(\.title))
            #expect(near.groups.map(\.change) == exact.groups.map(\.change))
            for (near, exact) in zip(near.groups, exact.groups) {
                #expect(near.ratio.value == exact.ratio.value)
            }
        }
    }

    /// Stalls that are not ranked do not affect the time range and the versions of a ranking.
    @Test func `a ranking's time is that of ranked stalls in both engines`() throws {
        try withTemporaryDirectory { directory in
            let (run, other) = (SampleReports.run(), SampleReports.run(version: "9.9", number: 901))
            let day: Int64 = 86_400
            let path = directory.appending(path: "a.sqlite")
            try SampleReports.writeStore(
                at: path, [SampleReports.report(1, run: run, startingAfter: 4 * day)], run: run)
            let early = directory.appending(path: "b.sqlite")
            try SampleReports.writeStore(
                at: early, [SampleReports.report(2, run: other, verdict: .stopped)], run: other)
            let central = directory.appending(path: "central.sqlite").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            _ = try ingest.run([path.path, early.path])
            try ingest.close()
            let store = try ReportStore.open(path: central)
            let question = RankingQuestion(store: store, filter: ReportFilter(), by: .signature)
            let exact = try question.exactRanking(by: .total, buckets: days)
            let near = try #require(
                try question.fromRollUps(by: .total, withDays: true, buckets: days))
            #expect(near.overview.first == exact.overview.first)
            #expect(near.overview.last == exact.overview.last)
            #expect(near.overview.apps == exact.overview.apps)
            #expect(near.buckets == exact.buckets && near.buckets?.count == 1)
        }
    }
}
