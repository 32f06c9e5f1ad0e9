// A month of a fleet's reports, and a central store of millions of them, made in minutes.

import CSQLite
import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore

/// Reports of 20 apps, ten versions of which two are current at a time, 500 hosts and 30 days. An app has a hundred
/// stall locations, of which few are hot.
struct Fleet: ReportFeed {
    static let start: Int64 = 1_700_006_400_000_000
    private static let length_us: Int64 = 30 * .microsecondsOfDay

    static let storeCount = 10
    static let appCount = 20
    /// A run a host, app and pair of days.
    private static let runCount = 20 * 10 * 25

    /// A part of the month, from 0 on: each has reports and processes of its own, and the code of all.
    struct Part {
        var number = 0
        var count = 1

        func time(_ line: Int, of lines: Int) -> Int64 {
            let length = Fleet.length_us / Int64(count)
            return Fleet.start + Int64(number) * length + Int64(line) * length / Int64(lines + 1)
        }
    }

    private let count: Int
    private let part: Part
    private var workload = Workload(seed: 7)
    private var runs: [ProcessRun] = []
    private(set) var lineNumber = 0
    private var stores: [UniqueID] = []
    private var reportCounts = Array(repeating: Int64(0), count: storeCount)
    private var names: [CodeLocation: [Frame]] = [:]

    init(count: Int, part: Part = Part()) {
        (self.count, self.part) = (count, part)
        workload.random.state ^= UInt64(part.number)
        stores = (0..<Self.storeCount).map { _ in
            UniqueID(version7At: UnixTime(microseconds: Self.start), random: &workload.random)
        }
        runs = (0..<Self.runCount).map { workload.run($0) }
        for index in runs.indices {
            runs[index].app = "app-\(index % 20)"
            runs[index].version = "2.\(index / 20 % 10).0"
            runs[index].host = "web-\(index * 7 % 500)"
        }
    }

    mutating func next() throws(LineFault) -> PortableRow? {
        guard lineNumber < count else { return nil }
        lineNumber += 1
        let time = part.time(lineNumber, of: count)
        let day = Int((time - Self.start) / .microsecondsOfDay)
        let app = Int(workload.random.next() % 20)
        let version = (day / 3 + Int(workload.random.next() % 2)) % 10
        let start = Int(workload.random.next() % 25)
        let run = runs[app + 20 * version + 200 * start]
        var report = workload.report(run, path: app)
        report.start.microseconds = time
        for index in report.samples.indices {
            report.samples[index].frames = report.samples[index].locations.flatMap { frames($0) }
        }
        report.id = UniqueID(version7At: report.start, random: &workload.random)
        // A process writes to one store.
        let store = (app + start) % Self.storeCount
        reportCounts[store] += 1
        let seq = reportCounts[store]
        return .report(
            PortableReport(
                report: report,
                origin: ReportOrigin(store: stores[store], seq: seq, revision: seq),
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
    /// Creates a central store with this many reports: some are imported like real reports, SQL copies these under other
    /// sources, processes, ids, times and durations, and the roll-ups are rebuilt.
    static func makeStore(_ path: String, reports count: Int, part: Part = Part()) throws {
        guard access(path, F_OK) != 0 else { return }
        let modelCount = min(count, 100_000)
        let partial = path + "-partial"
        unlink(partial)
        let ingest = try Ingest(into: partial, grouper: rules)
        _ = try ingest.run(["-"]) { _ throws(StoreError) in Fleet(count: modelCount, part: part) }
        try ingest.close()
        try copyReports(in: partial, times: count / modelCount - 1)
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
        let runColumns = "app, version, build_id, host, pid, boot_id, start_ticks, started_us"
        let columns = """
            mode, activity, phase, state, verdict, cpu_ns, detection_delay_ns, samples, cause,
            cause_confidence, cause_detail, threads, agent_ns, skipped_threads, signature, evidence,
            evidence_numbers, cause_permille
            """
        // As if each had come as an agent's store: how far it was taken is known then.
        try database.run(
            """
            update source set line_count = 0,
                revision = (select max(revision) from report where source = source.id)
            """)
        let (runs, loops) = (
            try database.integer("select max(id) from process_run"),
            try database.integer("select max(id) from loop")
        )
        for copy in 0..<max(0, times) {
            let (source, run, loop) = (
                (copy + 1) * storeCount, (copy + 1) * runs, (copy + 1) * loops
            )
            try database.run(
                """
                insert into source (id, store, revision)
                select id + \(source), randomblob(16), revision from source where id <= \(storeCount);
                insert into process_run (id, uuid, \(runColumns))
                select id + \(run), randomblob(16), \(runColumns) from process_run where id <= \(runs);
                insert into run_source (run, source)
                select run + \(run), source + \(source) from run_source where run <= \(runs);
                insert into loop (id, run, name, threshold_ns)
                select id + \(loop), run + \(run), name, threshold_ns from loop where id <= \(loops);
                insert into report (source, seq, revision, id, start_us, duration_ns, loop, \(columns))
                select source, seq, revision, uuid7(start_us), start_us, duration_ns, loop, \(columns)
                from (
                    select source + \(source) as source, seq, revision,
                        start_us + abs(random() % 20000000) as start_us,
                        duration_ns / 100 * (80 + abs(random() % 40)) as duration_ns,
                        loop + \(loop) as loop, \(columns)
                    from report where source <= \(storeCount) order by source, seq)
                """)
        }
        try database.run("commit")
    }
}
