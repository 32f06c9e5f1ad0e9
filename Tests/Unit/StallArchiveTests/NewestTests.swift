import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: queries that use indexes return what reading every report returns.
/// Method: agents' reports spread over weeks, in a central store and in an agent's; all summaries are the oracle.
@Suite struct NewestTests {
    let directory = try! TemporaryDirectory()
    var agent: String { directory("agent-1.sqlite") }
    var central: String { directory("central.sqlite") }

    init() throws {
        var random = SeededGenerator(seed: 7)
        let day: Int64 = 86_400_000_000
        for number in 1...2 as ClosedRange<UInt64> {
            var generator = ReportGenerator(seed: number)
            let store = try AgentStore(
                path: directory("agent-\(number).sqlite"), run: generator.run)
            for index in 0..<60 {
                var report = generator.report(state: .ended)
                report.start.microseconds += .random(in: -20 * day...20 * day, using: &random)
                // A third of the ids was made by others, at some other time.
                if index % 3 > 0 { report.id = UniqueID(version7At: report.start, random: &random) }
                try store.record(report, images: generator.images)
            }
            try store.close()
        }
        let ingest = try Ingest(into: central, grouper: PlainGrouper())
        _ = try ingest.run([directory("agent-1.sqlite"), directory("agent-2.sqlite")])
        try ingest.close()
    }

    private func expected(_ store: ReportStore, _ filter: ReportFilter) throws -> [UniqueID] {
        try store.summaries(filter).reports
            .sorted { ($1.start, $1.id.description) < ($0.start, $0.id.description) }.map(\.id)
    }

    private var filters: [ReportFilter] {
        var host = ReportFilter()
        host.hosts = [ReportGenerator(seed: 2).run.host]
        var time = ReportFilter()
        time.since = UnixTime(microseconds: 1_699_500_000_000_000)
        time.until = UnixTime(microseconds: 1_700_400_000_123_456)
        return [ReportFilter(), host, time]
    }

    @Test func `the newest reports come in order, as many as there are`() throws {
        for path in [agent, central] {
            let store = try ReportStore.open(path: path)
            for filter in filters {
                let all = try expected(store, filter)
                for count in [1, 7, 40, 1000] {
                    let newest = try store.newest(filter, count: count)
                    #expect(newest.reports.map(\.id) == Array(all.prefix(count)))
                    #expect(newest.reports.allSatisfy { newest.runs.indices.contains($0.run) })
                }
            }
        }
    }

    @Test func `every report is found by its id, whenever that was made`() throws {
        let store = try ReportStore.open(path: central)
        let summaries = try store.summaries(ReportFilter()).reports
        #expect(summaries.count == 120)
        for report in summaries {
            #expect(try store.report(idPrefix: report.id.description).start == report.start)
        }
        #expect(throws: StoreError.self) { try store.report(idPrefix: "ffff") }
    }

    @Test func `sets of stacks hold all the time of the stalls`() throws {
        for path in [agent, central] {
            let store = try ReportStore.open(path: path)
            for filter in filters {
                let stalls = try store.summaries(filter).reports.filter { $0.verdict == .stalled }
                let sets = try store.stackSets(filter)
                #expect(sets.entries.reduce(0) { $0 + $1.count } == stalls.count)
                let time_ns = sets.entries.reduce(0) {
                    $1.times_ns.reduce($0 + $1.timeWithoutStack_ns, +)
                }
                // Shares of a duration are whole nanoseconds.
                let error = abs(time_ns - stalls.reduce(0) { $0 + $1.duration.nanoseconds })
                #expect(error <= stalls.count * 32)
            }
        }
    }
}
