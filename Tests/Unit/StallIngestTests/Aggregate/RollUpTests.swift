import Foundation
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: roll-ups always agree with the reports, whatever was imported and changed, and are kept when the reports are
/// pruned.
/// Method: seeded agents that write, change and symbolicate reports between runs of ingest; whole reports, grouped and
/// aggregated here, are the oracle.
@Suite struct RollUpTests {
    let directory = try! TemporaryDirectory()
    let rules = PlainGrouper()
    var central: String { directory("central.sqlite") }

    /// What the roll-ups of a store should say: count, total, longest and what was not the threads' own, by title.
    func expected(_ path: String, _ filter: ReportFilter = ReportFilter()) throws -> [String:
        [Int64]]
    {
        var sums: [String: [Int64]] = [:]
        for report in try ReportStore.open(path: path).reports(filter)
        where report.verdict == .stalled {
            let group = rules.group(of: report, cause: report.cause?.cause)
            // One title with another cause is another group.
            let key = group.title + (report.cause.map { " (\($0.cause.word))" } ?? "")
            let sum = sums[key] ?? [0, 0, 0, 0]
            let duration = report.duration.nanoseconds
            sums[key] = [
                sum[0] + 1, sum[1] + duration, max(sum[2], duration),
                sum[3] + report.delayedTime.nanoseconds,
            ]
        }
        return sums
    }

    func found(
        _ path: String, _ filter: ReportFilter = ReportFilter(), withDays: Bool = false
    ) throws -> [String: [Int64]] {
        let answer = try ReportStore.open(path: path).aggregates(
            AggregateQuestion(filter, withDays: withDays), grouper: rules)
        return Dictionary(
            uniqueKeysWithValues: answer.groups.map {
                (
                    $0.group.title + ($0.cause.map { " (\($0.word))" } ?? ""),
                    [
                        Int64($0.count), $0.total.nanoseconds, $0.max.nanoseconds,
                        $0.totals.delayed.nanoseconds,
                    ]
                )
            })
    }

    func ingest(_ paths: [String]) throws {
        let ingest = try Ingest(into: central)
        #expect(try ingest.run(paths).skippedCount == 0)
        try ingest.close()
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `after every ingest the roll-ups are the sums of the reports`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var agents: [(path: String, generator: ReportGenerator, store: AgentStore)] = []
        for number in 1...2 as ClosedRange<UInt64> {
            let generator = ReportGenerator(seed: seed * 2 + number)
            let path = directory("\(number).sqlite")
            agents.append((path, generator, try AgentStore(path: path, run: generator.run)))
        }
        var open: [[StallReport]] = [[], []]
        for _ in 0..<8 {
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                let index = Int.random(in: 0...1, using: &random)
                let store = agents[index].store
                let images = agents[index].generator.images
                switch Int.random(in: 0...4, using: &random) {
                case 0:
                    open[index].append(agents[index].generator.report(state: .open))
                    try store.record(open[index].last!, images: images)
                case 1 where !open[index].isEmpty:
                    var report = open[index].removeFirst()
                    report.state = .ended
                    report.samples.append(agents[index].generator.sample())
                    report.duration = report.duration * Double.random(in: 0...3, using: &random)
                    try store.record(report, images: images)
                case 2 where !open[index].isEmpty:
                    open[index][0].duration = .milliseconds(
                        Int.random(in: 1...900, using: &random))
                    try store.record(open[index][0], images: images)
                default:
                    let report = agents[index].generator.report(state: .ended)
                    try store.record(report, images: images)
                    // Half of them get their names later, or never.
                    guard Bool.random(using: &random) else { continue }
                    try store.symbolize(agents[index].generator.names(of: report))
                }
            }
            try ingest(agents.map(\.path))
            #expect(try found(central) == expected(central))
            #expect(try found(central, withDays: true) == expected(central))
            #expect(try checkStore(path: central).map(\.description) == [])
        }
        let answer = try ReportStore.open(path: central).aggregates(
            AggregateQuestion(), grouper: rules)
        let reports = try ReportStore.open(path: central).reports(.init())
        #expect(answer.counts == Dictionary(grouping: reports, by: \.verdict).mapValues(\.count))
        #expect(answer.first == reports.map(\.start).min())
        #expect(answer.last == reports.map(\.start).max())
        for group in try ReportStore.open(path: central).aggregates(
            AggregateQuestion(withDays: true), grouper: rules
        ).groups {
            #expect(group.days.values.reduce(0) { $0 + $1.count } == group.count)
            #expect(group.days.values.reduce(.zero) { $0 + $1.total } == group.total)
            #expect(group.days.values.map(\.longest).max() == group.max)
            // A sum of squares is between those of equal parts and of a single one.
            let total = group.total / .seconds(1)
            let slack = 1e-10 * Double(group.count)  // buckets of few microseconds are coarse
            #expect(group.totals.squares >= total * total / Double(group.count) * 0.96 - slack)
            #expect(group.totals.squares <= total * total * 1.04 + slack)
        }
    }

    @Test func `an agent's store answers as the central one does`() throws {
        var generator = ReportGenerator(seed: 40)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        for _ in 0..<60 {
            let report = generator.report()
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.close()
        try ingest([path])
        for key in GroupKey.allCases where !key.needsReports {
            let here = try ReportStore.open(path: path).aggregates(
                AggregateQuestion(by: key, withDays: true), grouper: rules)
            let there = try ReportStore.open(path: central).aggregates(
                AggregateQuestion(by: key, withDays: true), grouper: rules)
            func comparable(_ groups: [StallAggregate]) -> [String: [AnyHashable]] {
                Dictionary(
                    uniqueKeysWithValues: groups.map {
                        (
                            "\($0.group.title) \($0.group.signature)",
                            [
                                $0.group, $0.count, $0.total, $0.max, $0.first, $0.last, $0.example,
                                $0.apps, $0.versions, $0.loops, $0.causes, $0.days,
                            ]
                        )
                    })
            }
            #expect(comparable(here.groups) == comparable(there.groups), "\(key)")
            #expect(here.counts == there.counts)
            for exact in here.groups {
                let near = there.groups.first { $0.group == exact.group }
                let error = try #require(near).p50.milliseconds - exact.p50.milliseconds
                #expect(exact.count > 1 || error == 0)
            }
        }
    }

    /// Starts spread over three months, so that questions meet all three kinds of rows.
    @Test func `any time that is asked for is answered exactly`() throws {
        var generator = ReportGenerator(seed: 41)
        var random = SeededGenerator(seed: 41)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        let day: Int64 = 86_400_000_000
        let start = generator.run.started.microseconds
        for _ in 0..<300 {
            var report = generator.report(state: .ended)
            report.start.microseconds = start + .random(in: -20 * day...80 * day, using: &random)
            try store.record(report, images: generator.images)
        }
        try store.close()
        try ingest([path])
        for _ in 0..<60 {
            func time() -> UnixTime? {
                switch Int.random(in: 0...3, using: &random) {
                case 0: return nil
                case 1:
                    return UnixTime(
                        microseconds: (start / day + .random(in: -25...85, using: &random)) * day)
                default:
                    return UnixTime(
                        microseconds: start + .random(in: -25 * day...85 * day, using: &random))
                }
            }
            var filter = ReportFilter()
            (filter.since, filter.until) = (time(), time())
            if Bool.random(using: &random) { filter.loops = ["main"] }
            #expect(try found(central, filter) == expected(central, filter), "\(filter)")
            let store = try ReportStore.open(path: central)
            let reports = try store.reports(filter)
            #expect(Set(try store.summaries(filter).reports.map(\.id)) == Set(reports.map(\.id)))
            let stalls = reports.count { $0.verdict == .stalled }
            #expect(try store.stackSets(filter).entries.reduce(0) { $0 + $1.count } == stalls)
        }
    }

    /// Reading only listed groups gives the same result as reading all.
    @Test func `the largest groups are those of all, and the rest is counted`() throws {
        var generator = ReportGenerator(seed: 46)
        var random = SeededGenerator(seed: 46)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        let start = generator.run.started.microseconds
        for _ in 0..<300 {
            var report = generator.report(state: .ended)
            report.start.microseconds = start + .random(in: 0...6_000_000_000_000, using: &random)
            try store.record(report, images: generator.images)
            if Bool.random(using: &random) { try store.symbolize(generator.names(of: report)) }
        }
        try store.close()
        try ingest([path])
        let reader = try ReportStore.open(path: central)
        for key in GroupKey.allCases where !key.needsReports {
            for since in [nil, UnixTime(microseconds: start + 2_000_000_000_000)] {
                var filter = ReportFilter()
                filter.since = since
                filter.loops = Bool.random(using: &random) ? ["main"] : []
                let all = try reader.aggregates(
                    AggregateQuestion(filter, by: key, withDays: true), grouper: rules)
                let orders: [(RankingOrder, (StallAggregate) -> Duration)] = [
                    (.total, \.own), (.count, { .seconds($0.count) }), (.max, \.max),
                    (.p95, \.p95),
                ]
                for (order, size) in orders {
                    for count in [1, 3, 1000] {
                        let some = try reader.aggregates(
                            AggregateQuestion(
                                filter, by: key, withDays: true,
                                largest: LargestGroups(count: count, by: order)),
                            grouper: rules)
                        let ranked = all.groups.sorted {
                            (size($0), $0.own) > (size($1), $1.own)
                        }
                        #expect(Set(some.groups) == Set(ranked.prefix(count)))
                        #expect(some.groupCount == all.groupCount && some.total == all.total)
                        #expect(some.delayed == all.delayed && all.delayed > .zero)
                        #expect(some.counts == all.counts)
                        #expect(some.first == all.first && some.last == all.last)
                        #expect(some.apps == all.apps && some.loops == all.loops)
                    }
                }
                guard key == .signature else { continue }
                let named = Set(
                    all.groups.map(\.group.signature).shuffled(using: &random).prefix(2))
                let some = try reader.aggregates(
                    AggregateQuestion(
                        filter, withDays: true,
                        largest: LargestGroups(by: .total, among: named)),
                    grouper: rules)
                #expect(
                    Set(some.groups)
                        == Set(all.groups.filter { named.contains($0.group.signature) }))
                #expect(some.groupCount == all.groupCount && some.counts == all.counts)
            }
        }
    }

    /// Goal: `top --by p95` of a store with truncated stacks. Parts of their group move to others, which leaves it
    /// empty.
    @Test func `a group that nothing is left of has quantiles of zero`() {
        #expect(RollUpSum().quantiles([0, 0.5, 1]) == [.zero, .zero, .zero])
        #expect(RollUpSum().size(.p95) == (0, 0))
    }

    @Test func `names that come later move reports to their group`() throws {
        var generator = ReportGenerator(seed: 42)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        var report = generator.report(state: .ended)
        report.verdict = .stalled
        report.cause = nil
        report.samples = [generator.sample()]
        let place = CodeLocation(
            imagePath: "/opt/photos", buildID: generator.run.buildID, offset: 0x40,
            kind: .interrupted)
        report.samples[0].locations = [place]
        report.samples[0].isLate = false
        try store.record(report, images: generator.images)
        try ingest([path])
        #expect(try Array(found(central).keys) == ["photos+0x40"])
        for name in ["tick() here", "draw()"] {
            var frame = Frame(place)
            frame.function = name
            frame.line = name == "draw()" ? 7 : nil
            try store.symbolize([place: [frame]])
            try ingest([path])
            #expect(try Array(found(central).keys) == [name])
            #expect(try checkStore(path: central).isEmpty)
        }
        let database = try RawDatabase(central)
        #expect(try database.number("select count(*) from unnamed_report") == 0)
        #expect(try database.number("select count(*) from rollup") == 2)
    }

    @Test func `other rules regroup all reports`() throws {
        var generator = ReportGenerator(seed: 43)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        for _ in 0..<80 {
            let report = generator.report()
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try ingest([path])
        let before = try found(central)
        let other = PlainGrouper(rulesHash: 2, cutsNames: true)
        _ = try regroupStore(path: central, grouper: other)
        let after = try found(central)
        #expect(after.keys != before.keys)
        #expect(after.keys.allSatisfy { !$0.contains("in Timeline") })
        func count(_ sums: [String: [Int64]]) -> Int64 { sums.values.reduce(0) { $0 + $1[0] } }
        #expect(count(after) == count(before))
        #expect(try ReportStore.open(path: central).rulesHash() == 2)
        #expect(try checkStore(path: central).isEmpty)
        _ = try regroupStore(path: central, grouper: rules)
        #expect(try found(central) == before)
        #expect(try checkStore(path: central).isEmpty)
    }

    @Test func `roll-ups outlive reports, and go when they are asked to`() throws {
        var generator = ReportGenerator(seed: 44)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        let day: Int64 = 86_400_000_000
        let start = generator.run.started.microseconds
        for index in 0..<200 as Range<Int64> {
            var report = generator.report(state: .ended)
            report.start.microseconds = start + index * day / 2
            try store.record(report, images: generator.images)
        }
        try store.close()
        try ingest([path])
        let all = try found(central)
        let middle = UnixTime(microseconds: start + 40 * day)
        #expect(try pruneStore(path: central, startedBefore: middle).deletedCount == 80)
        #expect(try found(central) == all)
        #expect(try checkStore(path: central).isEmpty)
        // Pruned totals cannot be recomputed: a repair keeps them.
        try repairStore(path: central, grouper: rules)
        #expect(try found(central) == all)
        #expect(try checkStore(path: central).isEmpty)
        let late = UnixTime(microseconds: start + 60 * day)
        let summary = try pruneStore(
            path: central, keeping: Retention(rollUpsSince: late), grouper: rules)
        #expect(summary.deletedCount == 40)
        let first = UnixTime(microseconds: late.microseconds / day * day)
        var filter = ReportFilter()
        filter.since = first
        #expect(try found(central) == found(central, filter))
        #expect(try checkStore(path: central).isEmpty)
        try expectSound(central)
    }

    @Test(arguments: [
        "update rollup set report_count = report_count + 1 where day_count = 1",
        "update rollup set max_ns = max_ns + 1 where day_count = 32",
        "delete from rollup where day_count = 1", "delete from rollup where day_count = 32",
        "delete from report_day", "update report_day set first_seq = last_seq + 1",
        "update report set signature = null where seq % 2 = 0",
        "update report set duration_ns = duration_ns + 1000000000",
        "update report set verdict = (verdict + 1) % 5",
        "delete from cohort", "delete from signature",
    ])
    func `a check finds what is out of step, and a repair mends it`(change: String) throws {
        var generator = ReportGenerator(seed: 45)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        for _ in 0..<40 { try store.record(generator.report(), images: generator.images) }
        try store.close()
        try ingest([path])
        #expect(try checkStore(path: central).isEmpty)
        try RawDatabase(central).query(change)
        #expect(try !checkStore(path: central).isEmpty)
        try repairStore(path: central, grouper: rules)
        #expect(try checkStore(path: central).map(\.description) == [])
        #expect(try found(central) == expected(central))
    }
}
