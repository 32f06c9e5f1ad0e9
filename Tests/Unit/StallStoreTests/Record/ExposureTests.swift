import StallModel
import StallQuery
import StoreTestSupport
import TestSupport
import Testing

@testable import StallArchive
@testable import StallIngest
@testable import StallStore

/// Goal: watched time and suppressed stalls reach the central store as the agent counted them, once, and are pruned
/// with the totals that they are the denominator of.
/// Method: an agent's store is written, imported, extended, and imported again.
@Suite struct ExposureTests {
    let directory = try! TemporaryDirectory()
    let generator = ReportGenerator(seed: 5)
    let day = 86_400_000_000 as Int64

    func stretch(_ number: Int, at start: UnixTime) -> LoopExposure {
        LoopExposure(
            run: generator.run, loop: number.isMultiple(of: 2) ? "main" : "decoder",
            threshold: .milliseconds(250), start: start, watched: .seconds(60),
            busy: .milliseconds(number * 10), readyDelay: .microseconds(number),
            microStallCount: number, microStallTime: .milliseconds(number * 120),
            lengths: LengthHistogram(counts: [0: 5, 7: number, 90: 1, 271: 2]))
    }

    func suppressed(_ count: Int, _ reason: SuppressionReason) -> SuppressedStalls {
        SuppressedStalls(
            run: generator.run, loop: "main", place: -7, reason: reason, count: count,
            total: .milliseconds(300 * count))
    }

    func ingest() throws -> IngestSummary {
        let ingest = try Ingest(into: directory("central.sqlite"))
        defer { try? ingest.close() }
        return try ingest.run([directory("agent.sqlite")])
    }

    /// 40 periods of almost ten years of delay each are within the limits; their sum exceeds 64 bits.
    @Test func `no source ends the view of watched time for other readers`() throws {
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for number in 1...40 {
            try agent.record(
                stretch(
                    2,
                    at: UnixTime(
                        microseconds: generator.run.started.microseconds
                            + Int64(number) * 60_000_000)))
        }
        let start = UnixTime(microseconds: generator.run.started.microseconds + 41 * 60_000_000)
        try agent.record(stretch(3, at: start))
        try agent.close()
        let usual = try RawDatabase(directory("agent.sqlite")).query("select * from watched")
        #expect(
            usual.map { $0.dropFirst(2) } == [
                ["decoder", "0.0166666666666667", "8.33333333333333e-06", "11", "3", "0.003"],
                ["main", "0.666666666666667", "0.000222222222222222", "400", "80", "0.08"],
            ])
        try RawDatabase(directory("agent.sqlite")).query(
            """
            update exposure set busy_ns = 310000000000000000, ready_delay_ns = 310000000000000000,
                watched_ns = 400 * 86400000000000
            where loop = (select id from loop where name = 'main')
            """)
        #expect(try ingest().skippedCount == 0)
        for path in ["agent.sqlite", "central.sqlite"] {
            let found = try RawDatabase(directory(path)).query("select * from watched")
            // The largest number of nanoseconds, in hours; what is below it is exact.
            #expect(
                found.map { $0.dropFirst(2) } == [
                    ["decoder", "0.0166666666666667", "8.33333333333333e-06", "11", "3", "0.003"],
                    [
                        "main", "384000.0", "2562047.78801522", "400", "80", "9223372036854.78",
                    ],
                ], "\(path)")
        }
    }

    @Test func `what the agent counted is what the central store says, however often it asks`()
        throws
    {
        let start = generator.run.started
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        var stretches = (1...4).map {
            stretch($0, at: UnixTime(microseconds: start.microseconds + Int64($0) * 60_000_000))
        }
        for stretch in stretches { try agent.record(stretch) }
        try agent.countSuppressed(suppressed(3, .place), threshold: .milliseconds(250))
        for _ in 1...2 { _ = try ingest() }

        // The agent continues, adds to its counts, and subtracts one that turned out to be reported.
        stretches.append(stretch(5, at: UnixTime(microseconds: start.microseconds + 300_000_000)))
        try agent.record(stretches[4])
        try agent.countSuppressed(suppressed(4, .place), threshold: .milliseconds(250))
        try agent.countSuppressed(suppressed(-1, .place), threshold: .milliseconds(250))
        try agent.countSuppressed(suppressed(2, .debugger), threshold: .milliseconds(250))
        try agent.close()
        for _ in 1...2 { _ = try ingest() }

        for path in ["agent.sqlite", "central.sqlite"] {
            let store = try ReportStore.open(path: directory(path))
            #expect(try store.exposure(ReportFilter()) == stretches, "\(path)")
            var sums: [String: LoopExposure] = [:]
            for stretch in stretches {
                guard var sum = sums[stretch.loop] else {
                    sums[stretch.loop] = stretch
                    continue
                }
                sum.watched += stretch.watched
                sum.busy += stretch.busy
                sum.readyDelay += stretch.readyDelay
                sum.microStallCount += stretch.microStallCount
                sum.microStallTime += stretch.microStallTime
                sum.lengths.add(stretch.lengths)
                sums[stretch.loop] = sum
            }
            let loops = try store.watchedLoops(ReportFilter(), withLengths: true)
            #expect(Set(loops) == Set(sums.values), "\(path)")
            let lean = try store.watchedLoops(ReportFilter(), withLengths: false)
            #expect(lean.allSatisfy { $0.lengths.count == 0 })
            #expect(Set(lean.map(\.watched)) == Set(sums.values.map(\.watched)))
            #expect(
                try Set(store.suppressedStalls(ReportFilter()))
                    == [suppressed(6, .place), suppressed(2, .debugger)], "\(path)")
        }
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    @Test func `pruning roll-ups prunes the watched time of their days, pruning reports does not`()
        throws
    {
        let noon = UnixTime(microseconds: 20_000 * day + day / 2)
        let stretches = (0..<4).map {
            stretch($0, at: UnixTime(microseconds: noon.microseconds + Int64($0) * day))
        }
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for stretch in stretches { try agent.record(stretch) }
        try agent.close()
        _ = try ingest()
        func prune(_ retention: Retention) throws -> [LoopExposure] {
            let path = directory("central.sqlite")
            _ = try pruneStore(path: path, keeping: retention, grouper: PlainGrouper())
            return try ReportStore.open(path: path).exposure(ReportFilter())
        }
        let later = UnixTime(microseconds: stretches[2].start.microseconds + day / 4)
        #expect(try prune(Retention(reportsSince: later)) == stretches)
        #expect(try prune(Retention(rollUpsSince: later)) == Array(stretches[2...]))
        _ = try ingest()
        #expect(try prune(Retention()) == Array(stretches[2...]), "it does not come back")
    }

    /// The watched time of a copy of a store is held under the store that it was one with: its loops are watched all the same.
    @Test func `that a loop was watched goes from one central store to the next`() throws {
        var generator = generator
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for _ in 0..<6 {
            let report = generator.report(state: .ended)
            try agent.record(report, images: generator.images)
            var watched = stretch(1, at: generator.run.started)
            (watched.loop, watched.threshold) = (report.loop, report.threshold)
            try agent.record(watched)
        }
        try agent.close()
        _ = try ingest()
        let central = try RawDatabase(directory("central.sqlite"))
        let isWatched = "select group_concat(distinct is_watched) from cohort"
        let before = try central.query(isWatched)
        try central.query("delete from exposure")
        let next = try Ingest(into: directory("next.sqlite"))
        #expect(try next.run([directory("central.sqlite")]).addedCount == 6)
        try next.close()
        #expect(try RawDatabase(directory("next.sqlite")).query(isWatched) == before)
        #expect(before.contains { $0.contains("1") }, "\(before)")
    }
}
