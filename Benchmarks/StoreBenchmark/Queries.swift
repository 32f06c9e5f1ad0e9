// What questions to a central store of millions of reports cost, beside what SQLite needs to look at
// every report once.

import CSQLite
import Glibc
import StallAnalysis
import StallModel
import StallStore

enum Queries {
    static func run(in directory: String, _ count: Int) throws {
        let path = "\(directory)/central-\(count).sqlite"
        let ingest = try Ingest(into: path, grouper: rules)
        let elapsed = try StoreBenchmark.time {
            _ = try ingest.run(["-"], lines: { _ throws(StoreError) in Fleet(count: count) })
        }
        try ingest.close()
        print("\(count) reports: taken one by one, a second\t\(rate(count, elapsed))")
        print("\(count) reports: bytes a report\t\(StoreBenchmark.size(path) / count)")
        let scan = try best { try touchEveryReport(path) }
        say(count, "limit: SQLite sums one column of every report", scan)

        let store = try ReportStore.open(path: path)
        func ask(
            _ what: String, _ filter: ReportFilter, _ dimension: RollUpDimension = .signature,
            withDays: Bool = false
        ) throws {
            var groups = 0
            let elapsed = try best {
                groups = try store.rollUps(
                    filter, by: dimension, withDays: withDays, grouper: rules
                ).groups.count
            }
            say(count, "\(what) (\(groups) groups)", elapsed)
        }
        let last = UnixTime(microseconds: Fleet.start + 30 * 86_400_000_000)
        var app = ReportFilter()
        app.apps = ["app-3"]
        var week = app
        week.since = UnixTime(microseconds: last.microseconds - 7 * 86_400_000_000)
        var hours = ReportFilter()
        hours.since = UnixTime(microseconds: last.microseconds - 7_200_000_000)
        var version = app
        version.versions = ["2.3.0"]
        try ask("top: all", ReportFilter())
        try ask("top: all, by version", ReportFilter(), .version)
        try ask("top: all, with days", ReportFilter(), withDays: true)
        try ask("top: one app", app)
        try ask("top: one app, 7 days", week)
        try ask("top: last two hours", hours)
        try ask("diff: one side of two versions", version)
        say(count, "list: newest 20", try best { _ = try store.reports(.init(), limit: 20) })
        let id = try store.reports(.init(), limit: 1)[0].id.description
        say(count, "show: one by its id", try best { _ = try store.report(idPrefix: id) })
    }

    /// The best of three: what else the machine does only adds.
    private static func best(_ body: () throws -> Void) rethrows -> Duration {
        try (0..<3).map { _ in try StoreBenchmark.time(body) }.min()!
    }

    private static func say(_ count: Int, _ what: String, _ duration: Duration) {
        let milliseconds = (duration / .milliseconds(1) * 100).rounded() / 100
        print("\(count) reports: \(what)\t\(milliseconds) ms")
    }

    private static func rate(_ count: Int, _ elapsed: Duration) -> Int {
        Int(Double(count) / (elapsed / .seconds(1)))
    }

    private static func touchEveryReport(_ path: String) throws {
        var connection: OpaquePointer?
        guard sqlite3_open_v2(path, &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK else {
            throw StoreError.missing(path: path)
        }
        sqlite3_exec(connection, "select sum(duration_ns) from report", nil, nil, nil)
        sqlite3_close(connection)
    }
}

/// Reports of 20 apps, ten versions of which two live at a time, 500 hosts and 30 days. An app has a
/// hundred places where it stalls, of which few are hot.
private struct Fleet: ReportFeed {
    static let start: Int64 = 1_700_006_400_000_000

    private let count: Int
    private var workload = Workload(seed: 7)
    private var runs: [ProcessRun] = []
    private(set) var lineNumber = 0
    private let store: UniqueID
    private var names: [CodeLocation: [Frame]] = [:]

    init(count: Int) {
        self.count = count
        store = UniqueID(version7At: UnixTime(microseconds: Self.start), random: &workload.random)
        // A run a host, app and pair of days.
        runs = (0..<20 * 10 * 25).map { workload.run($0) }
        for index in runs.indices {
            runs[index].app = "app-\(index % 20)"
            runs[index].version = "2.\(index / 20 % 10).0"
            runs[index].host = "web-\(index * 7 % 500)"
        }
    }

    mutating func next() throws(LineFault) -> PortableReport? {
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
        return PortableReport(
            report: report,
            origin: ReportOrigin(store: store, seq: Int64(lineNumber), revision: Int64(lineNumber)),
            images: lineNumber == 1 ? workload.images : [])
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
