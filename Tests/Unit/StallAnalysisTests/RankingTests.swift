import StallModel
import StallQuery
import Testing
import TestSupport

@testable import StallAnalysis

/// Goal: the ranking counts every stall once, in its group, with exact numbers.
/// Method: a few reports whose groups, sums and quantiles can be checked by hand.
@Suite struct RankingTests {
    let stacks: [Int64: [Frame]] = [
        1: frames("clock_nanosleep <- sleepInTimer() <- tick() <- StallRunLoop/EventRunLoop.run()"),
        2: frames("Swift/Array.sort() <- layout(_:) <- tick() <- StallRunLoop/EventRunLoop.run()"),
        3: frames("fsync <- layout(_:) <- other() <- StallRunLoop/EventRunLoop.run()"),
    ]

    private func report(
        _ milliseconds: Int, stack: Int64, number: UInt8, run: Int = 0, loop: String = "main",
        verdict: StallVerdict = .stalled
    ) -> ReportSummary {
        ReportSummary(
            id: UniqueID(bytes: [UInt8](repeating: number, count: 16))!, run: run, loop: loop,
            start: UnixTime(microseconds: Int64(number)), duration: .milliseconds(milliseconds),
            outcome: StallOutcome(.ended), verdict: verdict,
            stacks: [WeightedStack(stack: stack, weight: .milliseconds(milliseconds))])
    }

    private func run(_ app: String, _ version: String, host: String = "web-1") -> ProcessRun {
        ProcessRun(
            id: UniqueID(bytes: [UInt8](repeating: 9, count: 16))!, app: app, version: version,
            buildID: nil,
            host: host, pid: 1, bootID: "", startTicks: 0, started: UnixTime(microseconds: 0))
    }

    private func ranked(by order: RankingOrder = .total, group: GroupKey = .signature)
        -> [StallAggregate]
    {
        rank(
            [
                report(2000, stack: 1, number: 1), report(1800, stack: 1, number: 2, run: 1),
                report(300, stack: 2, number: 3), report(400, stack: 2, number: 4, loop: "decoder"),
                report(500, stack: 2, number: 5, run: 1), report(600, stack: 3, number: 6),
                report(99_000, stack: 1, number: 7, verdict: .starved),
                report(98_000, stack: 1, number: 8, verdict: .stopped),
            ], runs: [run("photos", "1.0"), run("photos", "2.0", host: "web-2")], frames: stacks,
            by: order,
            group: group)
    }

    @Test func `groups hold their stalls and no others`() {
        let hotspots = ranked()
        #expect(
            hotspots.map(\.frames) == [
                ["sleepInTimer()", "tick()"], ["layout(_:)", "tick()"], ["layout(_:)", "other()"],
            ])
        #expect(hotspots.map(\.count) == [2, 3, 1])
        #expect(
            hotspots.map(\.total) == [.milliseconds(3800), .milliseconds(1200), .milliseconds(600)])
        #expect(hotspots[1].p50 == .milliseconds(400))
        #expect(hotspots[1].p95 == .milliseconds(500))
        #expect(hotspots[1].max == .milliseconds(500))
        #expect(hotspots[0].versions == ["1.0", "2.0"])
        #expect(hotspots[0].first == UnixTime(microseconds: 1))
        #expect(hotspots[0].last == UnixTime(microseconds: 2))
        #expect(hotspots[0].example?.description.hasPrefix("01") == true)
        #expect(hotspots[0].title == "sleep in sleepInTimer() <- tick()")
    }

    /// Two thirds of the sleeping stalls were waits for a CPU, which are not the sleep's.
    @Test func `groups are ranked by what was the threads' own, and the rest is said`() {
        var starved = [report(900, stack: 1, number: 1), report(900, stack: 1, number: 2)]
        for index in starved.indices { starved[index].delayed = .milliseconds(600) }
        let reports = starved + [report(700, stack: 2, number: 3)]
        let groups = rank(reports, runs: [run("photos", "1.0")], frames: stacks)
        #expect(groups.map(\.frames[0]) == ["layout(_:)", "sleepInTimer()"])
        #expect(groups.map(\.total) == [.milliseconds(700), .milliseconds(1800)])
        #expect(groups.map(\.own) == [.milliseconds(700), .milliseconds(600)])
        #expect(groups[1].max == .milliseconds(900), "a stall lasts as long as it lasts")
        let overview = Overview(reports, runs: [run("photos", "1.0")], example: nil)
        #expect(overview.totalLost == .milliseconds(2500))
        #expect(overview.delayed == .milliseconds(1200))
        let byFunction = rank(
            reports, runs: [run("photos", "1.0")], frames: stacks, group: .inclusive)
        #expect(
            byFunction.first { $0.title.contains("sleepInTimer") }?.own == .milliseconds(600))
    }

    @Test(arguments: [
        (RankingOrder.total, ["sleepInTimer()", "layout(_:)", "layout(_:)"]),
        (.count, ["layout(_:)", "sleepInTimer()", "layout(_:)"]),
        (.p95, ["sleepInTimer()", "layout(_:)", "layout(_:)"]),
        (.max, ["sleepInTimer()", "layout(_:)", "layout(_:)"]),
    ])
    func `the order is the one asked for`(order: RankingOrder, expected: [String]) {
        #expect(ranked(by: order).map { $0.frames[0] } == expected)
    }

    @Test(arguments: [
        (GroupKey.family, ["sleepInTimer()", "layout(_:)"], [2, 4]),
        (.function, ["sleepInTimer()", "layout(_:)"], [2, 4]),
        (.loop, ["main", "decoder"], [5, 1]), (.version, ["photos 1.0", "photos 2.0"], [4, 2]),
        (.host, ["web-1", "web-2"], [4, 2]), (.app, ["photos"], [6]),
    ])
    func `stalls are grouped by what is asked for`(group: GroupKey, titles: [String], counts: [Int])
    {
        let hotspots = ranked(group: group)
        #expect(hotspots.map(\.title) == titles)
        #expect(hotspots.map(\.count) == counts)
    }

    @Test(arguments: [
        (0.5, 1), (0.5, 2), (0.5, 5), (0.95, 5), (0.95, 20), (0.95, 21), (0.99, 3), (0.0, 3),
        (1.0, 3),
    ])
    func `a quantile is the smallest value that enough others do not exceed`(
        part: Double, count: Int
    ) {
        let values = (1...count).map { Duration.milliseconds($0 * $0) }
        let answer = quantile(part, of: values)
        #expect(values.contains(answer))
        #expect(Double(values.count { $0 <= answer }) >= part * Double(count))
        #expect(
            values.allSatisfy {
                $0 >= answer || Double(values.prefix { $0 < answer }.count) < part * Double(count)
            })
        #expect(quantile(part, of: []) == .zero)
    }

    @Test func `stalls with cut stacks count where the whole stacks lead`() {
        let stacks: [Int64: [Frame]] = [
            1: frames("fsync <- save() <- tick() <- start_thread"), 2: frames("fsync <- save()"),
            3: frames("fsync <- save() <- quit() <- start_thread"), 4: frames("usleep <- wait()"),
        ]
        let reports = [
            report(300, stack: 1, number: 1), report(900, stack: 2, number: 2),
            report(400, stack: 3, number: 3),
            report(100, stack: 4, number: 4),
        ]
        let hotspots = rank(reports, runs: [], frames: stacks)
        #expect(
            hotspots.map(\.frames) == [["save()", "quit()"], ["save()", "tick()"], ["wait()"]])
        #expect(hotspots.map(\.count) == [2, 1, 1])
    }

    /// Method: shuffled input, and stacks whose frames the store does not know.
    @Test func `the same reports rank the same in any order`() {
        var random = SeededGenerator(seed: 3)
        let reports = (0..<60).map { report(300 + $0 % 7, stack: Int64($0 % 5), number: UInt8($0)) }
        let expected = rank(reports, runs: [run("photos", "1.0")], frames: stacks)
        for _ in 0..<10 {
            #expect(
                rank(reports.shuffled(using: &random), runs: [run("photos", "1.0")], frames: stacks)
                    == expected)
        }
        #expect(expected.reduce(0) { $0 + $1.count } == 60)
    }
}
