import Foundation
import StallAnalysis
import StallModel
import StallArchive
import StallIngest
import StallQuery
import TestSupport
import Testing

/// Goal: one query has one result, whichever store of the same reports it is asked of: an agent's, a central one, a
/// large one that uses roll-ups, one merged from other central stores, one whose older reports were pruned.
/// Method: made-up fleets; every result of every store against the agent's, which is read report by report. Results of
/// roll-ups may differ by the width of a histogram's bucket in quantiles (1.6 %) and by 3 % in sums of squares, and in
/// nothing else.
@Suite struct OneAnswerTests {
    /// A store of the same reports, and how it is queried.
    private struct Asked: CustomStringConvertible {
        var description: String
        var store: any QueryableStore
        /// All is read from roll-ups, as of many reports.
        var isLarge = false
        /// Only roll-ups hold the older half.
        var isPruned = false

        var isExact: Bool { !isLarge && !isPruned }

        func question(_ filter: ReportFilter, by key: GroupKey = .signature) -> RankingQuestion {
            var question = RankingQuestion(store: store, filter: filter, by: key)
            if isLarge { question.exactLimit = -1 }
            return question
        }
    }

    /// Writes the stores, and calls `body` with the agent's and all others.
    private func withStores(
        seed: UInt64, _ body: (_ agent: Asked, _ others: [Asked]) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            func ingest(_ names: [String], into name: String) throws {
                let ingest = try Ingest(into: path(name), grouper: DefaultGrouper())
                #expect(try ingest.run(names.map(path)).skippedCount == 0)
                try ingest.close()
            }
            let fleet = MadeUpFleet(seed: seed)
            try fleet.write(fleet.runs.indices, to: path("agent"))
            try ingest(["agent"], into: "central")
            for index in fleet.runs.indices { try fleet.write([index], to: path("\(index)")) }
            try ingest(["3", "0"], into: "a")
            try ingest(["1"], into: "b")
            try ingest(["2", "0"], into: "b")
            try ingest(["b", "a", "1"], into: "merged")
            try ingest(["agent"], into: "pruned")
            _ = try pruneStore(
                path: path("pruned"),
                keeping: Retention(
                    reportsSince: UnixTime(
                        microseconds: MadeUpFleet.begin + MadeUpFleet.days / 2 * 86_400_000_000)),
                grouper: DefaultGrouper())
            func open(_ name: String) throws -> ReportStore {
                try ReportStore.open(path: path(name))
            }
            try body(
                Asked(description: "agent", store: open("agent")),
                [
                    Asked(description: "central", store: open("central")),
                    Asked(description: "large", store: open("central"), isLarge: true),
                    Asked(description: "merged", store: open("merged")),
                    Asked(description: "large merged", store: open("merged"), isLarge: true),
                    Asked(description: "pruned", store: open("pruned"), isPruned: true),
                ])
        }
    }

    /// All, and parts of all kinds. A pruned store has no hours and hosts: only whole days, apps and loops.
    private static func filters() -> [(filter: ReportFilter, isToldByRollUps: Bool)] {
        func day(_ number: Int64) -> UnixTime {
            // The fleet's first day begins at midnight, UTC.
            let begin = MadeUpFleet.begin - MadeUpFleet.begin % 86_400_000_000
            return UnixTime(microseconds: begin + number * 86_400_000_000)
        }
        var (app, loop, cause, host, days, hours) = (
            ReportFilter(), ReportFilter(), ReportFilter(), ReportFilter(), ReportFilter(),
            ReportFilter()
        )
        app.apps = ["photos"]
        (loop.loops, loop.versions) = (["main"], ["2.0"])
        cause.causes = [.lock, .disk]
        host.hosts = ["web-1"]
        (days.since, days.until) = (day(3), day(30))
        (hours.since, hours.until) = (
            UnixTime(microseconds: day(1).microseconds + 5_000_000_000), day(37)
        )
        return [
            (ReportFilter(), true), (app, true), (loop, true), (cause, true), (host, false),
            (days, true), (hours, false),
        ]
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `every store of the same reports gives the same answers`(seed: UInt64) throws {
        try withStores(seed: seed) { agent, others in
            try compareRankings(agent, others)
            try compareComparisons(agent, others)
            try compareStalls(agent, others)
            try compareStatuses(agent, others)
        }
    }

    /// Stores of every schema there was, as programs of that version wrote them.
    @Test(
        arguments: try! FileManager.default.contentsOfDirectory(
            atPath: Repository.root.appending(path: "sample-data/stores").path
        ).filter { $0.hasSuffix(".sqlite") }.sorted())
    func `a store of an earlier version gives the same answers as what is made of it`(
        name: String
    ) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            let kept = Repository.root.appending(path: "sample-data/stores/\(name)")
            for copy in ["agent", "migrated"] {
                try FileManager.default.copyItem(atPath: kept.path, toPath: path(copy))
            }
            _ = try migrateStore(path: path("migrated"))
            for (source, target) in [("agent", "central"), ("migrated", "again")] {
                let ingest = try Ingest(into: path(target), grouper: DefaultGrouper())
                #expect(try ingest.run([path(source)]).skippedCount == 0)
                try ingest.close()
                #expect(try checkStore(path: path(target)).isEmpty)
            }
            func asked(_ name: String, isLarge: Bool = false) throws -> Asked {
                Asked(
                    description: name, store: try ReportStore.open(path: path(name)),
                    isLarge: isLarge)
            }
            let agent = try asked("agent")
            let others = [
                try asked("migrated"), try asked("central"), try asked("central", isLarge: true),
                try asked("again", isLarge: true),
            ]
            try compareRankings(agent, others)
            try compareStalls(agent, others)
            try compareStatuses(agent, others)
        }
    }

    private func compareRankings(_ agent: Asked, _ others: [Asked]) throws {
        for (filter, isToldByRollUps) in Self.filters() {
            for key in GroupKey.allCases {
                // What no roll-up knows is read from reports, which a pruned store lacks: functions anywhere on a
                // stack, and groups on one host.
                let isOfHost = !filter.hosts.isEmpty
                let isOfRollUps =
                    isOfHost
                    ? !key.isOfStalls && !key.needsReports : isToldByRollUps && !key.needsReports
                for order in key == .signature ? RankingOrder.allCases : [.total] {
                    let expected = try agent.question(filter, by: key).ranking(by: order, limit: 5)
                    for other in others where isOfRollUps || !other.isPruned {
                        let found = try other.question(filter, by: key).ranking(by: order, limit: 5)
                        expectSame(
                            found, expected, other, by: order,
                            "\(other), \(key) by \(order), \(filter)")
                    }
                }
            }
        }
    }

    private func expectSame(
        _ found: Ranking, _ expected: Ranking, _ asked: Asked, by order: RankingOrder,
        _ place: Comment
    ) {
        #expect(found.overview.counts == expected.overview.counts, place)
        #expect(found.overview.apps == expected.overview.apps, place)
        #expect(found.totalLost == expected.totalLost, place)
        #expect(found.overview.watched.count == expected.overview.watched.count, place)
        #expect(found.overview.watched.total == expected.overview.watched.total, place)
        #expect(found.overview.first == expected.overview.first, place)
        #expect(found.overview.last == expected.overview.last, place)
        #expect(found.watched.total == expected.watched.total, place)
        #expect(
            found.groups.count + found.restCount == expected.groups.count + expected.restCount,
            place)
        if asked.isExact {
            #expect(found.overview.hosts == expected.overview.hosts, place)
            #expect(found.overview.hangCount == expected.overview.hangCount, place)
        }
        // By a quantile, groups that are closer than a bucket may swap.
        let isByOther = order == .p95 && !asked.isExact
        let rows = Array(zip(found.rows, isByOther ? [] : expected.rows))
        if !isByOther { #expect(rows.count == found.rows.count, place) }
        for (found, expected) in rows {
            #expect(found.exactPart == expected.exactPart, place)
            for (near, exact) in zip(found.quantiles, expected.quantiles) {
                #expect(asked.isExact ? near == exact : abs(near / exact - 1) < 0.017, place)
            }
            #expect(!asked.isExact || found.trendMs == expected.trendMs, place)
            #expect(asked.isPruned || found.example == expected.example, place)
        }
    }

    private func compareComparisons(_ agent: Asked, _ others: [Asked]) throws {
        func comparison(_ asked: Asked, _ key: GroupKey) throws -> [DiffRow] {
            let questions = ["1.0", "2.0"].map { version in
                var filter = ReportFilter()
                filter.versions = [version]
                return asked.question(filter, by: key)
            }
            let rankings = try RankingQuestion.rankings(questions)
            return DiffRow.rows(Comparison(rankings[0], rankings[1]))
        }
        for key in [GroupKey.signature, .family, .cause, .loop] {
            let expected = try comparison(agent, key)
            for other in others {
                let found = try comparison(other, key)
                #expect(found.count == expected.count, "\(other) \(key)")
                for (found, expected) in zip(found, expected) {
                    #expect(found.exactPart == expected.exactPart, "\(other) \(key)")
                    for (near, exact) in zip(found.bounds, expected.bounds) {
                        let isNear = exact == 0 ? near == 0 : abs(near / exact - 1) < 0.08
                        // Of pruned reports it is not known on which hosts they were.
                        #expect(
                            other.isPruned ? near == 0 : other.isExact ? near == exact : isNear,
                            "\(other) \(key)")
                    }
                    #expect(
                        !other.isExact || other.isPruned || found.change == expected.change,
                        "\(other) \(key)")
                }
            }
        }
    }

    /// Trends, trees and lists.
    private func compareStalls(_ agent: Asked, _ others: [Asked]) throws {
        for (filter, isToldByRollUps) in Self.filters() {
            for other in others where isToldByRollUps || !other.isPruned {
                for name in [nil, "save()", "load()"] {
                    func trend(_ asked: Asked) throws -> [[String]] {
                        let trend = try? TrendQuestion(
                            asked.question(filter), name: name, unit: .day
                        ).trend()
                        return (trend?.rows ?? []).map {
                            [$0.begin, $0.end, $0.title, "\($0.count)", "\($0.totalMs)"]
                                + ["\($0.maxMs)"]
                        }
                    }
                    #expect(try trend(other) == trend(agent), "\(other) \(filter)")
                }
            }
            for other in others where !other.isPruned {
                for direction in [TreeDirection.bottomUp, .topDown] {
                    func tree(_ asked: Asked) throws -> [String] {
                        let tree = try CallTree(
                            of: asked.store, filter, direction: direction, rules: .builtIn)
                        return ShownTree(tree, minShare: 0, depth: nil).rows.map { "\($0)" }
                    }
                    #expect(try tree(other) == tree(agent), "\(other) \(filter)")
                }
                func list(_ asked: Asked) throws -> [String] {
                    try Listing(store: asked.store, filter: filter, limit: 200).rows
                        .map { "\($0)" }
                }
                #expect(try list(other) == list(agent), "\(other) \(filter)")
            }
        }
    }

    private func compareStatuses(_ agent: Asked, _ others: [Asked]) throws {
        let expected = try StatusAnswer(of: agent.store)
        for other in others {
            let found = try StatusAnswer(of: other.store)
            #expect(found.status.lostByLoop == expected.status.lostByLoop, "\(other)")
            #expect(
                found.status.watchedLostByLoop == expected.status.watchedLostByLoop, "\(other)")
            #expect(found.status.losses == expected.status.losses, "\(other)")
            #expect(found.status.apps == expected.status.apps, "\(other)")
            #expect(found.status.hosts == expected.status.hosts, "\(other)")
            #expect(
                "\(found.exposure.loops)" == "\(expected.exposure.loops)", "\(other)")
            #expect("\(found.exposure.suppressed.count)" == "\(expected.exposure.suppressed.count)")
            guard !other.isPruned else { continue }
            #expect(found.status.reportCount == expected.status.reportCount, "\(other)")
            #expect(found.status.reportsByState == expected.status.reportsByState, "\(other)")
            #expect(
                found.status.reportsByVerdict == expected.status.reportsByVerdict, "\(other)")
            #expect(found.status.first == expected.status.first, "\(other)")
            #expect(found.status.last == expected.status.last, "\(other)")
        }
    }
}

extension HotspotRow {
    /// What every store says alike.
    fileprivate var exactPart: [String] {
        [
            "\(rank)", signature, family, title, "\(count)", "\(totalMs)", "\(share)", "\(maxMs)",
            "\(frames)", "\(withoutAppFrame)", wait ?? "", "\(apps)", "\(versions)", firstSeen,
            lastSeen, cause ?? "", "\(rateMsPerHour ?? -1)", "\(watchedCount)",
            "\(watchedTotalMs)", causes.map { "\($0.class) \($0.totalMs)" }.joined(separator: " "),
        ]
    }

    fileprivate var quantiles: [Double] { [p50Ms, p95Ms, p99Ms] }
}

extension DiffRow {
    /// What every store says alike.
    fileprivate var exactPart: [String] {
        [
            kind, signature ?? "", title, "\(frames)", "\(countA) \(countB)",
            "\(totalMsA) \(totalMsB)", "\(rateMsPerHourA ?? -1) \(rateMsPerHourB ?? -1)",
            "\(ratio ?? -1)", "\(comparedCountA) \(comparedCountB)",
            "\(comparedTotalMsA) \(comparedTotalMsB)",
        ]
    }

    fileprivate var bounds: [Double] { [ratioLow ?? 0, ratioHigh ?? 0] }
}
