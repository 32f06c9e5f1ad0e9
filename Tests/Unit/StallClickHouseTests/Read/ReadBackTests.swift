import Foundation
import StallArchive
import StallClickHouse
import StallHTTP
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

/// Goal: what is read of a cluster is what was copied to it, with every kind of value in every field.
/// Method: a central store is copied to a cluster that answers with the rows it was given.
@Suite struct ReadBackTests {
    let replayed = ReplayedCluster()
    let file: ReportStore
    let cluster: ClusterStore
    let filter = ReportFilter()

    init() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let agentPath = directory.appending(path: "agent.sqlite").path
        var generator = ReportGenerator(seed: 7)
        let agent = try AgentStore(path: agentPath, run: generator.run)
        for _ in 0..<60 {
            var report = generator.report(state: .ended)
            report.verdict = .stalled
            try agent.record(report, images: generator.images)
        }
        try agent.close()
        let path = directory.appending(path: "central.sqlite").path
        let ingest = try Ingest(into: path, grouper: PlainGrouper())
        _ = try ingest.run([agentPath])
        try ingest.close()
        _ = try StagedIngest(ClickHouseCluster(replayed.server()), pause: { _ in }).copy(path)
        file = try ReportStore.open(path: path)
        cluster = try ClusterStore(replayed.server())
    }

    @Test func `reports come back one by one, the newest first`() throws {
        typealias Entry = (report: StallReport, origin: ReportOrigin, images: [Image])
        func all(_ store: any QueryableStore) throws -> [Entry] {
            var entries: [Entry] = []
            try store.forEachReport(filter, in: .newestFirst, limit: nil) {
                entries.append(($0, $1, try $2.images(ofRun: $0.run.id)))
            }
            return entries
        }
        let (found, expected) = (try all(cluster), try all(file))
        #expect(expected.count == 60)
        #expect(found.map(\.report) == expected.map(\.report))
        #expect(found.map(\.origin) == expected.map(\.origin))
        #expect(found.map(\.images) == expected.map(\.images))
    }

    @Test func `as many reports come back as are wanted`() throws {
        for order in [CursorOrder.newestFirst, .stored, .byLoop] {
            var count = 0
            try cluster.forEachReport(filter, in: order, limit: 7) { _, _, _ in count += 1 }
            #expect(count == 7)
        }
        try cluster.forEachReport(filter, in: .newestFirst, limit: 0) { _, _, _ in
            Issue.record("no report is wanted")
        }
    }

    @Test func `outlines show the same frames, and places keep their numbers`() throws {
        func all(_ store: any QueryableStore) throws -> [String] {
            var lines: [String] = []
            try store.forEachOutline(filter, limit: nil, withThreads: true) { outline, lookup in
                lines.append("\(outline.report.id) \(outline.group.title) \(outline.threads.count)")
                for stack in outline.samples.compactMap(\.stack) {
                    var places: [Int32] = []
                    let isTruncated = try lookup.places(ofStack: stack, &places)
                    lines.append(
                        "\(isTruncated) \(try places.map { try lookup.frames(ofPlace: $0) })")
                }
            }
            return lines
        }
        let (found, expected) = (try all(cluster), try all(file))
        #expect(found == expected && found.count > 60)
        func places() throws -> [Int32] {
            var all: [Int32] = []
            try cluster.forEachOutline(filter, limit: nil, withThreads: false) { outline, lookup in
                for stack in outline.samples.compactMap(\.stack) {
                    var places: [Int32] = []
                    _ = try lookup.places(ofStack: stack, &places)
                    all += places
                }
            }
            return all
        }
        #expect(try places() == places())
    }

    @Test func `stalls come back with their stacks`() throws {
        func all(_ store: any QueryableStore, _ order: CursorOrder) throws -> Set<String> {
            var stalls: Set<String> = []
            try store.forEachStall(filter, in: order, limit: nil) { stall, lookup in
                var stall = stall
                let frames = try (stall.stacks.map(\.stack) + stall.threads.compactMap(\.stack)).map
                {
                    try lookup.frames(ofStack: $0)
                }
                for index in stall.stacks.indices { stall.stacks[index].stack = 0 }
                for index in stall.threads.indices { stall.threads[index].stack = nil }
                stalls.insert("\(stall) \(frames)")
            }
            return stalls
        }
        for order in [CursorOrder.stored, .byLoop, .newestFirst] {
            #expect(try all(cluster, order) == all(file, order))
        }
    }

    @Test func `summaries are those of the file`() throws {
        func all(_ selection: ReportSelection) -> [ReportSummary] {
            selection.reports.sorted { $0.id.words < $1.id.words }.map { report in
                var report = report
                for index in report.stacks.indices { report.stacks[index].stack = 0 }
                // The played cluster answers no to whatever it does not know.
                (report.run, report.isWatched) = (0, false)
                return report
            }
        }
        let selection = try cluster.summaries(filter)
        #expect(all(selection) == all(try file.summaries(filter)))
        #expect(selection.runs == (try file.summaries(filter).runs))
        let newest = try cluster.newest(filter, count: 100)
        let ids = newest.reports.map(\.id)
        #expect(ids == (try file.newest(filter, count: 100).reports.map(\.id)))
    }

    @Test func `sets of stacks and times are those of the file`() throws {
        func times(_ store: any QueryableStore) throws -> [String] {
            let times = try store.stackTimes(filter)
            let frames = try store.frames(ofStacks: Set(times.map(\.stack)))
            return times.map {
                "\($0.app) \($0.loop) \($0.time_ns) \($0.sampleCount) \(frames[$0.stack]!)"
            }.sorted()
        }
        #expect(try times(cluster) == times(file))
        func sets(_ store: any QueryableStore) throws -> [String] {
            let sets = try store.stackSets(filter)
            let frames = try store.frames(ofStacks: Set(sets.stacks))
            return sets.entries.map { entry in
                let stacks = entry.stacks.map { frames[sets.stacks[Int($0)]]! }
                return
                    "\(entry.count) \(entry.timeWithoutStack_ns) \(Array(entry.times_ns)) \(stacks)"
            }.sorted()
        }
        #expect(try sets(cluster) == sets(file))
        let table = try cluster.stallTable(filter, expected: 0)
        let expected = try file.stallTable(filter, expected: 0)
        #expect(table.counts == expected.counts)
        #expect(table.openCount == expected.openCount)
        #expect(
            table.stalls.map(\.duration_ns).sorted() == expected.stalls.map(\.duration_ns).sorted())
        #expect(table.weights.sorted() == expected.weights.sorted())
        func places(_ runs: [ProcessRun]) -> Set<[String]> {
            Set(runs.map { [$0.app, $0.version, $0.host] })
        }
        #expect(places(table.runs) == places(expected.runs.filter { !$0.app.isEmpty }))
    }

    @Test func `a report of a stack that is not there is refused`() throws {
        replayed.answers["from report final"] = "x"
        #expect(throws: ClickHouseError.self) { try cluster.stackSets(filter) }
        #expect(throws: ClickHouseError.self) {
            try cluster.forEachReport(filter, in: .newestFirst, limit: nil) { _, _, _ in }
        }
    }
}
