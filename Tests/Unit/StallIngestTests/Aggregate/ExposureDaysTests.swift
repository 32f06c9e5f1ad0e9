import StallModel
import StallQuery
import StoreTestSupport
import TestSupport
import Testing

@testable import StallArchive
@testable import StallIngest
@testable import StallStore

/// Goal: watched time that is added up by day is what its stretches add up to, for every time range, whatever was
/// imported, pruned, repaired or written before there were days.
/// Method: stretches at random, some of which reach over midnight; the oracle adds up the stretches that the store lists.
@Suite struct ExposureDaysTests {
    let directory = try! TemporaryDirectory()
    private let day = 86_400_000_000 as Int64
    private let begin = 1_700_006_400_000_000 as Int64

    private func ingest(_ name: String) throws {
        let ingest = try Ingest(into: directory("central"))
        #expect(try ingest.run([directory(name)]).skippedCount == 0)
        try ingest.close()
    }

    /// Adds stretches of five days to an agent's store.
    private func record(
        _ count: Int, to name: String, of generator: ReportGenerator,
        _ random: inout SeededGenerator
    ) throws {
        let agent = try AgentStore(path: directory(name), run: generator.run)
        for number in 0..<count {
            // Every fourth one is over a midnight, and one in ten longer than a day.
            let midnight = begin + .random(in: 1...5, using: &random) * day
            let start =
                number.isMultiple(of: 4)
                ? midnight - .random(in: 1...50_000_000, using: &random)
                : begin + .random(in: 0..<5 * day, using: &random)
            let length: Int64 =
                number.isMultiple(of: 10) ? 100_000_000_000_000 : 60_000_000_000
            try agent.record(
                LoopExposure(
                    run: generator.run, loop: Bool.random(using: &random) ? "main" : "decoder",
                    threshold: .milliseconds(250), start: UnixTime(microseconds: start),
                    watched: .nanoseconds(length + .random(in: 0..<999, using: &random)),
                    busy: .milliseconds(Int.random(in: 0..<900, using: &random)),
                    readyDelay: .microseconds(number), microStallCount: number % 3,
                    microStallTime: .milliseconds(number % 3 * 120),
                    lengths: LengthHistogram(counts: [number % 200 + 10: 7, 3: 1])))
        }
        try agent.close()
    }

    private func expectSums(_ random: inout SeededGenerator, _ place: Comment) throws {
        let store = try ReportStore.open(path: directory("central"))
        var filters = [ReportFilter()]
        for index in 0..<40 {
            var filter = ReportFilter()
            var times = (0..<2).map { _ in begin + .random(in: -day..<7 * day, using: &random) }
            if index.isMultiple(of: 2) { times = times.map { $0 / day * day } }
            filter.since = index % 5 == 0 ? nil : UnixTime(microseconds: times.min()!)
            filter.until = index % 5 == 1 ? nil : UnixTime(microseconds: times.max()!)
            if index.isMultiple(of: 3) { filter.loops = ["main"] }
            filters.append(filter)
        }
        struct Loop: Hashable {
            var run: UniqueID
            var name: String
        }
        for filter in filters {
            for withLengths in [true, false] {
                var sums: [Loop: LoopExposure] = [:]
                for stretch in try store.exposure(filter) {
                    let loop = Loop(run: stretch.run.id, name: stretch.loop)
                    var sum = sums[loop] ?? stretch
                    if sums[loop] != nil {
                        sum.start = min(sum.start, stretch.start)
                        sum.watched += stretch.watched
                        sum.busy += stretch.busy
                        sum.readyDelay += stretch.readyDelay
                        sum.microStallCount += stretch.microStallCount
                        sum.microStallTime += stretch.microStallTime
                        sum.lengths.add(stretch.lengths)
                    }
                    if !withLengths { sum.lengths = LengthHistogram() }
                    sums[loop] = sum
                }
                let found = try store.watchedLoops(filter, withLengths: withLengths)
                #expect(Set(found) == Set(sums.values), place)
            }
        }
        #expect(try checkStore(path: directory("central")).isEmpty, place)
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `days say what their stretches add up to`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let generators = [ReportGenerator(seed: 1), ReportGenerator(seed: 2)]
        for round in 0..<2 {
            for (index, generator) in generators.enumerated() {
                try record(30 + 60 * index, to: "agent-\(index)", of: generator, &random)
                try ingest("agent-\(index)")
                try expectSums(&random, "round \(round), agent \(index)")
            }
        }
        _ = try pruneStore(
            path: directory("central"),
            keeping: Retention(rollUpsSince: UnixTime(microseconds: begin + 2 * day + day / 3)),
            grouper: PlainGrouper())
        try expectSums(&random, "pruned")
        let count = try RawDatabase(directory("central")).number(
            "select count(*) from exposure_day where day < \((begin + 2 * day) / day)")
        #expect(count == 0)
    }

    @Test func `a store of before counts its stretches, and the next ingest adds them up`() throws {
        var random = SeededGenerator(seed: 9)
        let generator = ReportGenerator(seed: 1)
        try record(50, to: "agent", of: generator, &random)
        try ingest("agent")
        let days = try RawDatabase(directory("central")).number("select count(*) from exposure_day")
        #expect(days > 0)
        try RawDatabase(directory("central")).query(
            "delete from exposure_day; update grouping set has_exposure_days = 0")
        try expectSums(&random, "before")
        try record(10, to: "agent", of: generator, &random)
        try ingest("agent")
        let added = try RawDatabase(directory("central")).number(
            "select count(*) from exposure_day")
        #expect(added >= days)
        try expectSums(&random, "after")
    }

    @Test func `check finds a day that says something else, and its repair mends it`() throws {
        var random = SeededGenerator(seed: 4)
        try record(20, to: "agent", of: ReportGenerator(seed: 1), &random)
        try ingest("agent")
        for change in [
            "update exposure_day set watched_ns = watched_ns + 1 where day = (select min(day) from exposure_day)",
            "delete from exposure_day where day = (select max(day) from exposure_day)",
        ] {
            try RawDatabase(directory("central")).query(change)
            let faults = try checkStore(path: directory("central"))
            #expect(!faults.isEmpty && faults.allSatisfy(\.isRepairable))
            try repairStore(path: directory("central"), grouper: PlainGrouper())
            try expectSums(&random, "repaired")
        }
    }
}
