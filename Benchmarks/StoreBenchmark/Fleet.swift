// A month of a fleet's reports, and a central store of millions of them, made in minutes.

import CSQLite
import Foundation
import StallAnalysis
import StallModel
import StallArchive
import StallStore

/// Reports of 20 apps, ten versions of which two are current at a time, 500 hosts and 30 days. An app has a hundred
/// stall locations, of which few are hot.
struct Fleet: ReportFeed {
    static let start: Int64 = 1_700_006_400_000_000

    static let storeCount = 10
    static let appCount = 20

    private let count: Int
    private var workload = Workload(seed: 7)
    private var runs: [ProcessRun] = []
    private(set) var lineNumber = 0
    private var stores: [UniqueID] = []
    private var names: [CodeLocation: [Frame]] = [:]

    init(count: Int) {
        self.count = count
        stores = (0..<Self.storeCount).map { _ in
            UniqueID(version7At: UnixTime(microseconds: Self.start), random: &workload.random)
        }
        // A run a host, app and pair of days.
        runs = (0..<20 * 10 * 25).map { workload.run($0) }
        for index in runs.indices {
            runs[index].app = "app-\(index % 20)"
            runs[index].version = "2.\(index / 20 % 10).0"
            runs[index].host = "web-\(index * 7 % 500)"
        }
    }

    mutating func next() throws(LineFault) -> PortableRow? {
        guard lineNumber < count else { return nil }
        lineNumber += 1
        let day = lineNumber * 30 / (count + 1)
        let app = Int(workload.random.next() % 20)
        let version = (day / 3 + Int(workload.random.next() % 2)) % 10
        let run = runs[app + 20 * version + 200 * Int(workload.random.next() % 25)]
        var report = workload.report(run, path: app)
        report.start.microseconds =
            Self.start + Int64(lineNumber) * 30 * 86_400_000_000 / Int64(count + 1)
        for index in report.samples.indices {
            report.samples[index].frames = report.samples[index].locations.flatMap { frames($0) }
        }
        report.id = UniqueID(version7At: report.start, random: &workload.random)
        let seq = Int64((lineNumber - 1) / Self.storeCount + 1)
        return .report(
            PortableReport(
                report: report,
                origin: ReportOrigin(
                    store: stores[lineNumber % Self.storeCount], seq: seq, revision: seq),
                images: lineNumber == 1 ? workload.images : []))
    }

    private mutating func frames(_ location: CodeLocation) -> [Frame] {
        if let known = names[location] { return known }
        let frames = workload.frames(location)
        names[location] = frames
        return frames
    }

    var byteCount: Int { 0 }
    var hasFailed: Bool { false }
}

extension Fleet {
    /// Creates a central store with this many reports: a part is imported like real reports, SQL copies that part under
    /// other sources, ids, times and durations, and the roll-ups are rebuilt.
    static func makeStore(_ path: String, reports count: Int) throws {
        guard access(path, F_OK) != 0 else { return }
        let partCount = min(count, 100_000)
        let partial = path + "-partial"
        unlink(partial)
        let ingest = try Ingest(into: partial, grouper: rules)
        _ = try ingest.run(["-"], lines: { _ throws(StoreError) in Fleet(count: partCount) })
        try ingest.close()
        try copyReports(in: partial, times: count / partCount - 1)
        _ = try regroupStore(path: partial, grouper: rules)
        rename(partial, path)
    }

    /// Creates agents' stores as this many processes would leave them: the first one of each app is written by an
    /// agent, the others are copies of it with other identities, times and durations.
    ///
    /// - Returns: Their paths.
    static func makeAgentStores(
        in directory: String, count: Int, reports reportCount: Int
    ) throws -> [String] {
        var workload = Workload(seed: 1)
        let paths = (0..<count).map { "\(directory)/agent-\($0).sqlite" }
        for number in 0..<min(appCount, count) where access(paths[number], F_OK) != 0 {
            let run = workload.run(number)
            let store = try AgentStore(path: paths[number], run: run)
            for _ in 0..<reportCount { try workload.record(workload.report(run), to: store) }
            try store.close()
        }
        for number in appCount..<max(count, appCount) where access(paths[number], F_OK) != 0 {
            let model = try FileHandle(forReadingFrom: URL(filePath: paths[number % appCount]))
            try model.readToEnd()?.write(to: URL(filePath: paths[number]))
            let database = try RawDatabase(paths[number])
            database.addUUID7()
            try database.run(
                """
                pragma synchronous = off;
                begin;
                update source set store = randomblob(16);
                update process_run
                set uuid = randomblob(16), host = 'web-\(number % 500)', checksum = null;
                update report set start_us = start_us + abs(random() % 86400000000),
                    duration_ns = duration_ns / 100 * (80 + abs(random() % 40));
                update report set id = uuid7(start_us), checksum = null;
                commit
                """)
        }
        return paths
    }

    private static func copyReports(in path: String, times: Int) throws {
        let database = try RawDatabase(path)
        database.addUUID7()
        // It is made from nothing: after a crash, one makes it again.
        try database.run("pragma journal_mode = off; pragma synchronous = off; begin")
        let columns = """
            loop, mode, activity, phase, state, verdict, cpu_ns, detection_delay_ns, samples, cause,
            cause_confidence, cause_detail, threads, agent_ns, skipped_threads, signature, evidence,
            evidence_numbers, cause_permille
            """
        for copy in 0..<max(0, times) {
            let first = (copy + 1) * storeCount
            try database.run(
                """
                insert into source (id, store, revision)
                select id + \(first), randomblob(16), revision from source where id <= \(storeCount);
                insert into report (source, seq, revision, id, start_us, duration_ns, \(columns))
                select source, seq, revision, uuid7(start_us), start_us, duration_ns, \(columns) from (
                    select source + \(first) as source, seq, revision,
                        start_us + abs(random() % 20000000) as start_us,
                        duration_ns / 100 * (80 + abs(random() % 40)) as duration_ns, \(columns)
                    from report where source <= \(storeCount) order by source, seq)
                """)
        }
        try database.run("commit")
    }
}
