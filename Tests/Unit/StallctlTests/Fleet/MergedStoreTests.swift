import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: several stores answer as one that ingested them all, or not at all.
/// Method: a random fleet with cut stacks in two central stores and in one, asked the same; from roll-ups and from reports.
@Suite struct MergedStoreTests {
    /// Two stores with half of a fleet each, and one with all of it.
    private func withStores(
        _ seed: UInt64, isPruned: Bool = false, areAgents: Bool = false,
        _ body: (_ parts: MergedStore, _ whole: ReportStore) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let fleet = MadeUpFleet(seed: seed, reportsOfRun: 60)
            for index in fleet.runs.indices { try fleet.write([index], to: path("agent\(index)")) }
            let (first, second) = (
                [0, 2].map { path("agent\($0)") }, [1, 3].map { path("agent\($0)") }
            )
            try ingest(first, into: path("first"))
            try ingest(second, into: path("second"))
            try ingest(first + second, into: path("whole"))
            if isPruned {
                let middle = UnixTime(
                    microseconds: MadeUpFleet.begin + 20 * 86_400_000_000 + 12_345_678_901)
                for name in ["first", "second", "whole"] {
                    _ = try pruneStore(
                        path: path(name), keeping: Retention(reportsSince: middle),
                        grouper: DefaultGrouper())
                }
            }
            let parts = areAgents ? first + second : [path("first"), path("second")]
            try body(MergedStore(paths: parts), ReportStore.open(path: path("whole")))
        }
    }

    private static var filters: [ReportFilter] {
        var (days, parts, app, host, cause) = (
            ReportFilter(), ReportFilter(), ReportFilter(), ReportFilter(), ReportFilter()
        )
        (days.since, days.until) = (
            UnixTime(
                microseconds: MadeUpFleet.begin / 86_400_000_000 * 86_400_000_000 + 5
                    * 86_400_000_000),
            UnixTime(
                microseconds: MadeUpFleet.begin / 86_400_000_000 * 86_400_000_000 + 35
                    * 86_400_000_000)
        )
        (parts.since, parts.until) = (
            UnixTime(microseconds: MadeUpFleet.begin + 7 * 86_400_000_000 + 1_234_567),
            UnixTime(microseconds: MadeUpFleet.begin + 31 * 86_400_000_000 + 7_654_321)
        )
        app.apps = ["mail"]
        host.hosts = ["web-1"]
        cause.causes = [.lock, .disk]
        return [ReportFilter(), days, parts, app, host, cause]
    }

    private func text(_ rows: some Sequence<some Encodable>) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return try rows.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
            .joined(separator: "\n")
    }

    private func top(
        _ store: any QueryableStore, _ filter: ReportFilter, _ key: GroupKey, _ order: RankingOrder,
        exactLimit: Int, limit: Int = 100
    ) throws -> String {
        var question = RankingQuestion(store: store, filter: filter, by: key)
        question.exactLimit = exactLimit
        let ranking = try question.ranking(by: order, limit: limit)
        var overview = ranking.overview
        let counts = overview.counts.map { "\($0) \($1)" }.sorted()
        // A sum of fractions, which depends on the order of the reports, and a dictionary, which has none.
        (overview.watched.squares, overview.counts) = (0, [:])
        return try text(ranking.rows)
            + "\n\(overview) \(counts) \(ranking.restCount) \(ranking.watched.total as Duration?)"
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>, [0, 5000])
    func `top of two stores is top of one that has both`(seed: UInt64, exactLimit: Int) throws {
        try withStores(seed) { parts, whole in
            for filter in Self.filters {
                for key in GroupKey.allCases where key != .inclusive || exactLimit > 0 {
                    for order in RankingOrder.allCases where key == .signature || order == .total {
                        let found = try top(parts, filter, key, order, exactLimit: exactLimit)
                        let right = try top(whole, filter, key, order, exactLimit: exactLimit)
                        #expect(found == right, "\(key) \(order) \(filter)")
                    }
                }
            }
            // A group that is small in each store may be large in both.
            let few = try top(parts, ReportFilter(), .signature, .count, exactLimit: 0, limit: 2)
            #expect(
                try few == top(whole, ReportFilter(), .signature, .count, exactLimit: 0, limit: 2))
        }
    }

    @Test(arguments: 11...12 as ClosedRange<UInt64>)
    func `pruned stores answer from their roll-ups`(seed: UInt64) throws {
        try withStores(seed, isPruned: true) { parts, whole in
            for key in GroupKey.allCases where key != .inclusive {
                let found = try top(parts, ReportFilter(), key, .total, exactLimit: 5000)
                #expect(
                    try found == top(whole, ReportFilter(), key, .total, exactLimit: 5000), "\(key)"
                )
            }
        }
    }

    @Test func `agents' stores are asked together, too`() throws {
        try withStores(21, areAgents: true) { parts, whole in
            for key in GroupKey.allCases {
                let found = try top(parts, ReportFilter(), key, .total, exactLimit: 5000)
                #expect(
                    try found == top(whole, ReportFilter(), key, .total, exactLimit: 5000), "\(key)"
                )
            }
        }
    }

    @Test(arguments: 31...32 as ClosedRange<UInt64>, [0, 5000])
    func `trend and diff are those of one store`(seed: UInt64, exactLimit: Int) throws {
        try withStores(seed) { parts, whole in
            func trend(_ store: any QueryableStore, _ filter: ReportFilter) throws -> String {
                var ranking = RankingQuestion(store: store, filter: filter)
                ranking.exactLimit = exactLimit
                return try text(
                    TrendQuestion(ranking, name: nil, unit: .day) {
                        try .ofCalendar(from: $0, through: $1, in: $2, of: .gmt)
                    }.trend().rows)
            }
            func diff(_ store: any QueryableStore) throws -> String {
                let rankings = try RankingQuestion.rankings(
                    ["1.0", "2.0"].map {
                        var filter = ReportFilter()
                        filter.versions = [$0]
                        var question = RankingQuestion(store: store, filter: filter)
                        question.exactLimit = exactLimit
                        return question
                    })
                return try text(DiffRow.rows(Comparison(rankings[0], rankings[1])))
            }
            for filter in Self.filters {
                let found = try trend(parts, filter)
                #expect(try found == trend(whole, filter), "\(filter)")
            }
            let found = try diff(parts)
            #expect(try found == diff(whole))
        }
    }

    @Test func `status adds up what each store has`() throws {
        try withStores(41) { parts, whole in
            var (found, right) = (try parts.status(), try whole.status())
            // What each store has once, and its own size.
            for path in [\StoreStatus.stackCount, \.rollUpCount, \.rollUpDayCount] {
                found[keyPath: path] = 0
                right[keyPath: path] = 0
            }
            (found.path, found.bytes, right.path, right.bytes) = ("", 0, "", 0)
            #expect(found == right)
        }
    }

    @Test func `stores that have reports of the same store are refused`() throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let fleet = MadeUpFleet(seed: 1)
            for index in 0..<3 { try fleet.write([index], to: path("agent\(index)")) }
            try ingest([path("agent0"), path("agent1")], into: path("first"))
            try ingest([path("agent1"), path("agent2")], into: path("second"))
            #expect {
                try MergedStore(paths: [path("first"), path("second")])
            } throws: {
                "\($0)".contains("first and ") && "\($0)".contains("would count twice")
            }
            #expect(throws: MergedStoreError.self) {
                try MergedStore(paths: [path("agent0"), path("agent0")])
            }
        }
    }

    #if Fleet
    /// Goal: a cluster is not opened as if it were a file.
    @Test func `a cluster is asked alone`() {
        let cluster = "clickhouse://stall@hub:8123/stalls"
        #expect {
            try SeveralStoresOptions.open(paths: ["/nowhere/eu.sqlite", cluster])
        } throws: { error in
            "\(error)".contains("hub:8123") && "\(error)".contains("ask it without another --store")
        }
    }
    #endif
}
