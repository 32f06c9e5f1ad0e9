// How fast and how small the store is. Prints one line a measure; compare lines of one run only.
//
//     StoreBenchmark DIRECTORY [STORES] [REPORTS]    default: 100 stores of 1,000 reports each
//     StoreBenchmark queries DIRECTORY REPORTS       questions to a central store of so many reports

import CSQLite
import Glibc
import StallAnalysis
import StallModel
import StallStore

let rules = DefaultGrouper()

@main struct StoreBenchmark {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count > 1 else {
            print("usage: StoreBenchmark DIRECTORY [STORES] [REPORTS]")
            exit(64)
        }
        let storeCount = arguments.count > 2 ? Int(arguments[2]) ?? 100 : 100
        let reportCount = arguments.count > 3 ? Int(arguments[3]) ?? 1_000 : 1_000
        do {
            if arguments[1] == "queries", arguments.count > 3 {
                return try Queries.run(in: arguments[2], reportCount)
            }
            try run(in: arguments[1], storeCount, reportCount)
        } catch {
            print(error)
            exit(1)
        }
    }

    static func run(in directory: String, _ storeCount: Int, _ reportCount: Int) throws {
        var workload = Workload(seed: 1)
        var recordings: [Duration] = []
        var bytes = 0
        var paths: [String] = []
        for number in 0..<storeCount {
            let run = workload.run(number)
            paths.append("\(directory)/agent-\(number).sqlite")
            let store = try AgentStore(path: paths.last!, run: run)
            for index in 0..<reportCount {
                let report = workload.report(run)
                let start = ContinuousClock.now
                try store.record(report, images: workload.images)
                let unknown = try store.unsymbolized(report.samples.flatMap(\.locations))
                if !unknown.isEmpty {
                    try store.symbolize(
                        Dictionary(uniqueKeysWithValues: unknown.map { ($0, workload.frames($0)) }))
                }
                if index >= reportCount / 2 { recordings.append(.now - start) }
            }
            try store.close()
            bytes += size(paths.last!)
        }
        recordings.sort()
        let count = storeCount * reportCount
        say("agent: record with names, p50", recordings[recordings.count / 2])
        say("agent: record with names, p99", recordings[recordings.count * 99 / 100])
        print("agent: bytes a report\t\(bytes / count)")

        let central = "\(directory)/central.sqlite"
        let ingest = try Ingest(into: central, grouper: rules)
        let first = try time { _ = try ingest.run(paths) }
        print("ingest: reports a second\t\(Int(Double(count) / (first / .seconds(1))))")
        let again = try time { _ = try ingest.run(paths) }
        print(
            "ingest: files a second, nothing new\t\(Int(Double(storeCount) / (again / .seconds(1))))"
        )
        try ingest.close()
        print("central: bytes a report\t\(size(central) / count)")
        let limit = try insertLimit("\(directory)/limit.sqlite", count)
        print("limit: rows a second, appended by SQLite in one transaction\t\(limit)")

        let store = try ReportStore.open(path: central)
        var reports: [ReportSummary] = []
        say(
            "central: summaries of everything",
            try time { reports = try store.summaries(.init()).reports })
        let stacks = Set(reports.flatMap(\.stacks).map(\.stack))
        say(
            "central: frames of \(stacks.count) stacks",
            try time { _ = try store.frames(ofStacks: stacks) })
        var filter = ReportFilter()
        filter.apps = ["app-3"]
        say("central: summaries of one app in twenty", try time { _ = try store.summaries(filter) })
        say("central: newest 20 reports", try time { _ = try store.reports(.init(), limit: 20) })
        let id = reports[reports.count / 2].id.description
        say("central: a report by id", try time { _ = try store.report(idPrefix: id) })
        say("central: status", try time { _ = try store.status() })
        say("central: check", try time { _ = try checkStore(path: central) })
        let half = Int64(size(central) / 2)
        say(
            "central: prune to half",
            try time {
                _ = try pruneStore(path: central, keeping: Retention(bytes: half), grouper: rules)
            })
    }

    /// The most that SQLite gives on this machine, now: 13 small columns appended in one
    /// transaction.
    static func insertLimit(_ path: String, _ count: Int) throws -> Int {
        var connection: OpaquePointer?
        var statement: OpaquePointer?
        sqlite3_open(path, &connection)
        sqlite3_exec(
            connection,
            "pragma journal_mode = wal; create table t (a integer primary key, b, c, d, e, f, g, h, i, j, k, l, m)",
            nil, nil, nil)
        sqlite3_prepare_v2(
            connection, "insert into t values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
            &statement, nil)
        let elapsed = time {
            sqlite3_exec(connection, "begin", nil, nil, nil)
            for row in 0..<Int64(count) {
                for column: CInt in 1...13 {
                    sqlite3_bind_int64(statement, column, row &* Int64(column))
                }
                sqlite3_step(statement)
                sqlite3_reset(statement)
            }
            sqlite3_exec(connection, "commit", nil, nil, nil)
        }
        sqlite3_finalize(statement)
        sqlite3_close(connection)
        return Int(Double(count) / (elapsed / .seconds(1)))
    }

    static func time(_ body: () throws -> Void) rethrows -> Duration {
        try ContinuousClock().measure(body)
    }

    static func say(_ what: String, _ duration: Duration) {
        print("\(what)\t\(duration.formatted)")
    }

    static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}

extension Duration {
    /// Microseconds with one digit after the point.
    var formatted: String { "\((self / .microseconds(1) * 10).rounded() / 10) us" }
}

/// Reports as a fleet makes them: few functions are hot, samples of one stall share most of their
/// stack.
struct Workload {
    var random: SplitMix
    let images: [Image]
    private var clock: Int64 = 1_700_000_000_000_000
    private let paths: [[CodeLocation]]

    struct SplitMix: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var word = state
            word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
            word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
            return word ^ word >> 31
        }
    }

    init(seed: UInt64) {
        var random = SplitMix(state: seed)
        let images = (0..<8 as Range<UInt8>).map { number in
            let start = UInt64(number + 1) << 32
            return Image(
                path: "/opt/fleet/lib\(number).so",
                buildID: BuildID(bytes: [number, 1, 2, 3, 4, 5, 6, 7]),
                loadAddress: start, endAddress: start + 0x100_0000)
        }
        self.images = images
        // 2,000 ways into the code; each stall follows one and varies near its leaf.
        paths = (0..<2_000).map { (path: Int) -> [CodeLocation] in
            let depths = 0..<Int.random(in: 15...45, using: &random)
            return depths.reversed().map { (depth: Int) -> CodeLocation in
                let function = (depth < 12 ? path / 100 : path) * 64 + depth
                let image = images[depth % 8]
                return CodeLocation(
                    imagePath: image.path, buildID: image.buildID, offset: UInt64(function * 32),
                    kind: .returnAddress)
            }
        }
        self.random = random
    }

    mutating func run(_ number: Int) -> ProcessRun {
        let time = UnixTime(microseconds: clock)
        return ProcessRun(
            id: UniqueID(version7At: time, random: &random), app: "app-\(number % 20)",
            version: "2.\(number % 10).0", buildID: images[0].buildID, host: "web-\(number % 500)",
            pid: Int32(number) + 2, bootID: "not of this machine", startTicks: 1, started: time)
    }

    /// - Parameter path: Which app's ways into the code it takes; nil goes by the process.
    mutating func report(_ run: ProcessRun, path app: Int? = nil) -> StallReport {
        clock += 900_000
        let start = UnixTime(microseconds: clock)
        // An app has a hundred ways to stall, of which few are hot.
        let uniform = Double.random(in: 0..<1, using: &random)
        let way = Int(uniform * uniform * uniform * 100)
        let path = paths[(app ?? Int(run.pid) % 20) * 100 + way]
        let count = Int.random(in: 1...4, using: &random)
        return StallReport(
            id: UniqueID(version7At: start, random: &random), run: run, loop: "main",
            mode: "default", phase: .timer,
            start: start,
            duration: .microseconds(Int.random(in: 250_000...3_000_000, using: &random)),
            cpuTime: .microseconds(Int.random(in: 0...250_000, using: &random)),
            threshold: .milliseconds(250),
            detectionDelay: .microseconds(Int.random(in: 50...3_000, using: &random)),
            state: .ended,
            samples: (0..<count).map { index in
                var locations = path
                locations[0].kind = .interrupted
                locations[0].offset += random.next(upperBound: 8)
                return Sample(
                    offset: .microseconds(125_000 << index),
                    weight: .microseconds(125_000 << index),
                    thread: ThreadID(rawValue: run.pid), method: .signalFree,
                    captureCost: .microseconds(Int.random(in: 10...90, using: &random)),
                    locations: locations)
            })
    }

    func frames(_ location: CodeLocation) -> [Frame] {
        var frame = Frame(location)
        frame.function = "closure #1 in Timeline.update(entry:at:) number \(location.offset / 512)"
        frame.rawName = "$s8Timeline6update5entry2atySS_SitFyycfU_number\(location.offset / 512)"
        frame.file = "/src/Timeline/Entry\(location.offset / 512 % 97).swift"
        frame.line = Int(location.offset % 1_000) + 1
        return [frame]
    }
}
