import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: no number that a store holds ends its reader, and no sum of numbers that ingest takes leaves the range of one.
/// Method: single numbers of sound stores are changed behind the program's back; stalls of the longest duration that is
/// taken.
@Suite struct StoredNumberTests {
    let directory = try! TemporaryDirectory()
    let rules = PlainGrouper()

    /// An agent's store, and a central one that has imported it.
    private func stores(durations: [Duration]) throws -> [String] {
        var generator = ReportGenerator(seed: 1)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let first = generator.report(state: .ended)
        for duration in durations {
            // All of one group, and of one day.
            var report = first
            report.id = generator.report(state: .ended).id
            (report.duration, report.verdict) = (duration, .stalled)
            report.start = UnixTime(microseconds: 1_700_000_000_000_000)
            try store.record(report, images: generator.images)
        }
        try store.record(
            LoopExposure(
                run: generator.run, loop: "main", threshold: .milliseconds(250),
                start: UnixTime(microseconds: 1_700_000_000_000_000), watched: .seconds(60)))
        try store.close()
        let ingest = try Ingest(into: directory("central.sqlite"), grouper: rules)
        #expect(try ingest.run([directory("agent.sqlite")]).skippedCount == 0)
        try ingest.close()
        return [directory("agent.sqlite"), directory("central.sqlite")]
    }

    /// What a reader of the store answers; nil for one that says that it is damaged.
    private func answers(_ path: String) throws -> [String: Any?] {
        let store = try ReportStore.open(path: path)
        func answer<Value>(_ body: () throws -> Value) throws -> Value? {
            do { return try body() } catch StoreError.damaged { return nil }
        }
        var since = ReportFilter()
        since.since = UnixTime(microseconds: 1_600_000_000_000_001)
        since.until = UnixTime(microseconds: 1_800_000_000_000_001)
        return [
            "summaries": try answer { try store.summaries(ReportFilter(), ofGroups: nil) },
            "reports": try answer { try store.reports(ReportFilter()) },
            "newest": try answer { try store.newest(since, signature: nil, count: 5) },
            "status": try answer { try store.status() },
            "exposure": try answer { try store.exposure(since) },
            "watched": try answer { try store.watchedLoops(since, withLengths: true) },
            "daily": try answer { try store.dailyTotals(since) },
            "span": try answer { try store.timeSpan(ReportFilter()) },
            "table": try answer { try store.stallTable(ReportFilter(), expected: 0) },
            "sets": try answer { try store.stackSets(ReportFilter()) },
            "groups": try answer {
                try store.aggregates(
                    AggregateQuestion(since, withDays: true), grouper: rules)
            },
            "hosts": try answer {
                try store.aggregates(
                    AggregateQuestion(ReportFilter(), by: .host, withDays: true), grouper: rules)
            },
        ]
    }

    @Test(arguments: [
        "update report set start_us = 9223372036854775807, checksum = null",
        "update report set start_us = -9223372036854775808, checksum = null",
        "update report set duration_ns = 9223372036854775807, checksum = null",
        "update process_run set started_us = 9223372036854775807, checksum = null",
        "update exposure set start_us = -9223372036854775808",
        "update exposure set start_us = 9223372036854775807",
        "update rollup set first_day = -9223372036854775808",
        "update rollup set first_day = 9223372036854775807",
        "update rollup set report_count = 9223372036854775807, total_ns = -9223372036854775808",
        "update report set delayed_ns = 9223372036854775807, checksum = null",
        "update report set delayed_ns = -9223372036854775808, checksum = null",
        "update rollup set delayed_ns = 9223372036854775807",
        "update host_rollup set delayed_ns = -9223372036854775808",
        "update host_rollup set last_us = 9223372036854775807, first_day = 9223372036854775807",
        "update exposure_day set day = 9223372036854775807, start_us = -9223372036854775808",
        "update report_day set day = 9223372036854775807",
        "update grouping set hosts_from_day = 9223372036854775807",
        "update grouping set pruned_before_us = 9223372036854775807",
    ])
    func `a number out of range is an answer or damage, never a trap`(change: String) throws {
        for path in try stores(durations: [.seconds(1), .seconds(2)]) {
            let isThere = try !RawDatabase(path).query(
                "select 1 from sqlite_schema where name = '\(change.split(separator: " ")[1])'"
            ).isEmpty
            guard isThere else { continue }
            let sound = try answers(path)
            #expect(sound.values.allSatisfy { $0 != nil })
            try RawDatabase(path).query("pragma ignore_check_constraints = on; " + change)
            _ = try answers(path)
            if path.hasSuffix("central.sqlite") { _ = try checkStore(path: path) }
        }
    }

    @Test func `damage names the column and its number`() throws {
        let path = try stores(durations: [.seconds(1)])[1]
        try RawDatabase(path).query(
            "pragma ignore_check_constraints = on; update report set start_us = \(Int64.max), checksum = null"
        )
        let error = #expect(throws: StoreError.self) {
            try ReportStore.open(path: path).summaries(ReportFilter(), ofGroups: nil)
        }
        #expect("\(error!)".contains("9223372036854775807 in start_us is not a time"), "\(error!)")
    }

    /// Forty stalls of ten years are more than 64 bits of nanoseconds.
    @Test func `sums end at the largest number and come back from it`() throws {
        let longest = Duration.nanoseconds(ValueLimits.duration_ns)
        let path = try stores(durations: Array(repeating: longest, count: 40) + [.seconds(1)])[1]
        let store = try ReportStore.open(path: path)
        let answer = try store.aggregates(AggregateQuestion(ReportFilter()), grouper: rules)
        #expect(answer.groups.map(\.count) == [41])
        #expect(answer.total == .nanoseconds(Int64.max) && answer.groups[0].total == answer.total)
        let daily = try #require(try store.dailyTotals(ReportFilter()))
        #expect(daily.days.values.reduce(.zero) { $0 + $1.total } == answer.total)
        #expect(try checkStore(path: path).isEmpty)

        var totals = RollUpTotals()
        let entries = (0..<40).map {
            RollUpEntry(
                source: 1, seq: $0, start_us: 0, duration_ns: ValueLimits.duration_ns, cpu_ns: 0,
                delayed_ns: ValueLimits.duration_ns)
        }
        let areExact = totals.apply(entries.map { ($0, false) })
        #expect(areExact)
        #expect(totals.total_ns == .max)
        // Not exact: to be added up from the reports that are left.
        let areStillExact = totals.apply(entries[10...].map { ($0, true) })
        #expect(!areStillExact)
        // Where these were pruned, the most that so many can be.
        #expect(totals.total_ns == 10 * ValueLimits.duration_ns && totals.isPlausible)
        #expect(totals.delayed_ns == totals.total_ns)
    }

    /// Two stretches with half of the largest count each, and one with all of it, as a line may have.
    @Test(arguments: [[1 << 47, 1 << 47], [1 << 48], [(1 << 48) - 1, 5, 7]])
    func `counts of iterations end at the largest and are read again`(counts: [Int]) throws {
        let path = try stores(durations: [.seconds(1)])[1]
        var generator = ReportGenerator(seed: 2)
        let agent = directory("lengths.sqlite")
        let store = try AgentStore(path: agent, run: generator.run)
        try store.record(generator.report(state: .ended), images: generator.images)
        for (index, count) in counts.enumerated() {
            try store.record(
                LoopExposure(
                    run: generator.run, loop: "main", threshold: .milliseconds(250),
                    start: UnixTime(
                        microseconds: 1_700_000_000_000_000 + Int64(index) * 60_000_000),
                    watched: .seconds(60), lengths: LengthHistogram(counts: [9: count, 3: 1])))
        }
        try store.close()
        let ingest = try Ingest(into: path, grouper: rules)
        #expect(try ingest.run([agent]).skippedCount == 0)
        try ingest.close()
        let sum = LengthHistogram(
            counts: [9: LengthHistogram.largestCount, 3: counts.count])
        for path in [agent, path] {
            let loops = try ReportStore.open(path: path)
                .watchedLoops(ReportFilter(), withLengths: true)
            #expect(loops.first { $0.run.id == generator.run.id }?.lengths == sum, "\(path)")
        }
        #expect(try checkStore(path: path).isEmpty)
    }

    /// A bucket that is named again and again, in a file that no agent wrote.
    @Test func `a packed histogram ends at the largest count`() {
        var bytes: [UInt8] = []
        for index in 0..<40_000 {
            bytes.append(leb128: index == 0 ? 9 : 0)
            bytes.append(leb128: 1 << 48)
        }
        let histogram = bytes.withUnsafeBytes { LengthHistogram(encoded: $0) }
        #expect(histogram?.counts == [9: LengthHistogram.largestCount])
    }

    @Test func `a sum that wrapped is found and repaired, of pruned reports too`() throws {
        let longest = Duration.nanoseconds(ValueLimits.duration_ns)
        let path = try stores(durations: Array(repeating: longest, count: 40))[1]
        let raw = try RawDatabase(path)
        func wrap() throws {
            // What programs of before left there.
            for table in ["rollup", "host_rollup"] {
                try raw.query(
                    "update \(table) set total_ns = total_ns - 9223372036854775807 - 5646744073709551615"
                        + " where report_count > 28")
            }
        }
        try wrap()
        #expect(try !checkStore(path: path).isEmpty)
        try repairStore(path: path, grouper: rules)
        #expect(try checkStore(path: path).isEmpty)
        _ = try pruneStore(
            path: path,
            keeping: Retention(
                reportsSince: UnixTime(microseconds: 1_800_000_000_000_000)),
            grouper: rules)
        try wrap()
        #expect(try !checkStore(path: path).isEmpty)
        try repairStore(path: path, grouper: rules)
        #expect(try checkStore(path: path).isEmpty)
        let total = try ReportStore.open(path: path).aggregates(
            AggregateQuestion(ReportFilter()), grouper: rules
        ).total
        #expect(total == .nanoseconds(Int64.max))
    }
}
