import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: a comparison rests on the same hosts whichever way a store answers, and says so where it knows none.
/// Method: two versions on seven hosts, in agents' stores and in central ones; from reports and from roll-ups.
@Suite struct ComparedHostsTests {
    private func withStores(
        _ body: (_ whole: ReportStore, _ parts: MergedStore, _ path: String) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var agents: [String] = []
            for (number, version) in ["1.0", "2.0"].enumerated() {
                for host in 0..<7 {
                    let first = UInt64(number * 1000 + host * 100)
                    let run = SampleReports.run(
                        version: version, host: "web-\(host)", number: 20_000 + first)
                    let reports = (0..<(4 + 8 * number + host % 3)).map { index in
                        SampleReports.report(
                            first + UInt64(index) + 1, run: run,
                            startingAfter: Int64(index) * 40_000, lasting: 400 + host * 10,
                            samples: index % 4 == 0
                                ? [SampleReports.sample(at: 125, for: 200, SampleReports.computing)]
                                : nil)
                    }
                    agents.append(path("agent \(version) \(host)"))
                    try SampleReports.writeStore(
                        at: URL(filePath: agents.last!), reports, run: run)
                }
            }
            _ = try ingest(agents, into: path("whole"))
            _ = try ingest(Array(agents[..<5]), into: path("first"))
            _ = try ingest(Array(agents[5...]), into: path("second"))
            try body(
                ReportStore.open(path: path("whole")),
                MergedStore(paths: [path("first"), path("second")]), path("whole"))
        }
    }

    private func comparison(
        _ store: any QueryableStore, _ key: GroupKey, exactLimit: Int,
        _ versions: [String] = ["1.0", "2.0"]
    ) throws -> Comparison {
        let rankings = try RankingQuestion.rankings(
            versions.map { version in
                var filter = ReportFilter()
                filter.versions = [version]
                var question = RankingQuestion(store: store, filter: filter, by: key)
                question.exactLimit = exactLimit
                return question
            })
        return Comparison(rankings[0], rankings[1])
    }

    private func lines(_ comparison: Comparison) -> [String] {
        comparison.groups.map {
            "\($0.title) \($0.change) \($0.isSignificant) \($0.ratio.low) \($0.ratio.high)"
        } + ["\(comparison.change) \(comparison.ratio.low) \(comparison.ratio.high)"]
    }

    @Test(arguments: GroupKey.allCases)
    func `all groups together are the stalls, by whatever they are grouped`(key: GroupKey) throws {
        try withStores { whole, parts, _ in
            let expected = try comparison(whole, .signature, exactLimit: 5000)
            for (store, limit) in [(whole as any QueryableStore, 5000), (whole, 0), (parts, 5000)] {
                let found = try comparison(store, key, exactLimit: limit)
                #expect(found.first.count == expected.first.count)
                #expect(found.first.total == expected.first.total)
                #expect(found.second.total == expected.second.total)
                #expect(found.compared.second.count == expected.compared.second.count)
                #expect(found.compared.second.total == expected.compared.second.total)
                #expect(found.ratio.value == expected.ratio.value)
                #expect(
                    abs(found.ratio.low / expected.ratio.low - 1) < 0.08
                        && abs(found.ratio.high / expected.ratio.high - 1) < 0.08,
                    "\(found.ratio) \(expected.ratio)")
                #expect(found.change == expected.change)
                #expect(found.groups.allSatisfy { $0.first.count <= found.first.count })
            }
        }
    }

    @Test(arguments: [GroupKey.signature, .family, .function, .cause, .loop])
    func `roll-ups, reports and several stores give one verdict`(key: GroupKey) throws {
        try withStores { whole, parts, _ in
            let exact = try comparison(whole, key, exactLimit: 5000)
            #expect(exact.units?.word == "host" && exact.units?.second == 7)
            #expect(exact.change == .worse && exact.isSignificant && exact.exceeds(1.2))
            for (store, limit) in [(whole as any QueryableStore, 0), (parts, 0), (parts, 5000)] {
                #expect(try lines(comparison(store, key, exactLimit: limit)) == lines(exact))
            }
        }
    }

    @Test func `of pruned reports it says that it cannot tell`() throws {
        try withStores { _, _, path in
            let later = UnixTime(microseconds: SampleReports.noon.microseconds + 3_600_000_000)
            _ = try pruneStore(
                path: path, keeping: Retention(reportsSince: later), grouper: DefaultGrouper())
            let found = try comparison(
                ReportStore.open(path: path), .signature, exactLimit: 5000)
            #expect(found.cannotTell == "reports were pruned")
            #expect(found.ratio.value > 2 && found.ratio.low == 0 && found.ratio.high == .infinity)
            #expect(!found.isSignificant && !found.exceeds(1.2))
        }
    }

    @Test func `the other way round is the mirror image`() throws {
        try withStores { whole, _, _ in
            let forth = try comparison(whole, .signature, exactLimit: 0)
            let back = try comparison(whole, .signature, exactLimit: 0, ["2.0", "1.0"])
            #expect(back.change == .better && !back.exceeds(1))
            #expect(abs(back.ratio.low * forth.ratio.high - 1) < 1e-4)
        }
    }
}
