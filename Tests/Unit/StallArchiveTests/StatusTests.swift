import Foundation
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a central store counts its reports without reading each, with the same result as if it had, also if some were
/// pruned, came late or never ended. Method: seeded agents; all reports, read in full, are the oracle.
@Suite struct StatusTests {
    let directory = try! TemporaryDirectory()
    let rules = PlainGrouper()
    static let day: Int64 = 86_400_000_000
    var central: String { directory("central.sqlite") }

    /// Writes an agent's store with reports of a hundred days, open ones and hangs among them.
    func writeAgent(_ seed: UInt64) throws -> (path: String, start: Int64) {
        var generator = ReportGenerator(seed: seed)
        var random = SeededGenerator(seed: seed)
        let path = directory("\(seed).sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        let start = generator.run.started.microseconds
        for _ in 0..<150 {
            let state = [StallState.ended, .ended, .open, .hang].randomElement(using: &random)!
            var report = generator.report(state: state)
            report.start.microseconds = start + .random(in: 0...100 * Self.day, using: &random)
            try store.record(report, images: generator.images)
        }
        try store.close()
        return (path, start)
    }

    func ingest(_ path: String) throws {
        let ingest = try Ingest(into: central)
        #expect(try ingest.run([path]).skippedCount == 0)
        try ingest.close()
    }

    func expectTrue(
        _ path: String, isCentral: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let store = try ReportStore.open(path: path)
        let (status, reports) = (try store.status(), try store.reports(ReportFilter()))
        func counts<Key: Hashable>(_ key: (StallReport) -> Key) -> [Key: Int] {
            Dictionary(grouping: reports, by: key).mapValues(\.count)
        }
        #expect(status.reportCount == reports.count, sourceLocation: sourceLocation)
        #expect(status.reportsByState == counts(\.state), sourceLocation: sourceLocation)
        #expect(status.reportsByVerdict == counts(\.verdict), sourceLocation: sourceLocation)
        #expect(status.first == reports.map(\.start).min(), sourceLocation: sourceLocation)
        #expect(status.last == reports.map(\.start).max(), sourceLocation: sourceLocation)
        let samples = reports.reduce(0) { $0 + $1.samples.count }
        #expect(status.sampleCount == (isCentral ? nil : samples), sourceLocation: sourceLocation)
        // The time lost in stalls, as a ranking by loop shows it.
        let loops = try store.aggregates(AggregateQuestion(by: .loop), grouper: rules).groups
        let lost = Dictionary(uniqueKeysWithValues: loops.map { ($0.group.title, $0.total) })
        #expect(status.lostByLoop == lost, sourceLocation: sourceLocation)
        guard isCentral else { return }
        let database = try RawDatabase(path)
        func number(_ sql: String) throws -> Int { Int(try database.number(sql)) }
        #expect(
            try status.rollUpReportCount
                == number("select ifnull(sum(report_count), 0) from rollup where day_count = 32"),
            sourceLocation: sourceLocation)
        #expect(
            try status.rollUpCount == number("select count(*) from rollup where day_count = 1"),
            sourceLocation: sourceLocation)
    }

    @Test func `an agent's store is read`() throws {
        try expectTrue(writeAgent(1).path, isCentral: false)
    }

    @Test(arguments: 2...4 as ClosedRange<UInt64>)
    func `a central store says what there is, however much was pruned`(seed: UInt64) throws {
        let (path, start) = try writeAgent(seed)
        try ingest(path)
        try expectTrue(central)
        let all = try ReportStore.open(path: central).status()
        #expect(all.rollUpReportCount == all.reportCount)
        // In the middle of a day, and at its begin.
        for boundary in [start + 30 * Self.day, (start / Self.day + 40) * Self.day] {
            _ = try pruneStore(path: central, startedBefore: UnixTime(microseconds: boundary))
            try expectTrue(central)
        }
        let pruned = try ReportStore.open(path: central).status()
        #expect(pruned.reportCount < all.reportCount)
        #expect(pruned.rollUpReportCount == all.rollUpReportCount)
        // Reports of days that were pruned come late.
        try ingest(writeAgent(seed + 10).path)
        try expectTrue(central)
        _ = try pruneStore(
            path: central,
            keeping: Retention(rollUpsSince: UnixTime(microseconds: start + 60 * Self.day)),
            grouper: rules)
        try expectTrue(central)
        // All but the open ones, which nothing counts any more.
        let end = UnixTime(microseconds: .max)
        _ = try pruneStore(path: central, startedBefore: end)
        try expectTrue(central)
        _ = try pruneStore(path: central, keeping: Retention(rollUpsSince: end), grouper: rules)
        try expectTrue(central)
        #expect(try checkStore(path: central).isEmpty)
    }

    @Test func `open reports outlive the roll-ups that counted them`() throws {
        var generator = ReportGenerator(seed: 5)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for _ in 0..<9 {
            try store.record(generator.report(state: .open), images: generator.images)
        }
        try ingest(directory("agent.sqlite"))
        let retention = Retention(rollUpsSince: UnixTime(microseconds: .max))
        #expect(
            try pruneStore(path: central, keeping: retention, grouper: rules).deletedCount == 0)
        try expectTrue(central)
        #expect(try ReportStore.open(path: central).status().reportCount == 9)
        #expect(try checkStore(path: central).map(\.description) == [])
        try store.close()
    }

    @Test func `hangs are counted by their index`() throws {
        try Ingest(into: central).close()
        for state in [0, 2] {
            let plan = try RawDatabase(central).query(
                "explain query plan select count(*) from report where state = \(state)")
            let index = state == 0 ? "report_open" : "report_hang"
            #expect(plan.contains { $0.contains { $0?.contains("INDEX \(index)") ?? false } })
        }
    }
}
