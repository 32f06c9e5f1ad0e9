// What an agent and an ingest job do, for a test to kill or to fail.

import CSQLite
import Glibc
import StallIngest
import StallModel
import StallStore
import TestSupport

/// A process of its own while it writes or ingests; the generator of its reports otherwise.
enum Victim {
    /// Records open reports, refreshes and ends them, like an agent; what is printed is acknowledged.
    static func write(to path: String, count: Int) throws {
        var random = SystemRandomNumberGenerator()
        let run = thisProcess(&random)
        let store = try patiently { try AgentStore(path: path, run: run) }
        let isSabotaged = getenv("SABOTAGE") != nil
        for _ in 0..<count {
            var report = makeReport(run, &random)
            if isSabotaged { say("\(report.id) ended") }
            try patiently { try store.record(report, images: images) }
            say("\(report.id) open")
            report.duration = .seconds(1)
            try patiently { try store.record(report, images: images) }
            report.state = .ended
            report.duration = .seconds(2)
            try patiently { try store.record(report, images: images) }
            say("\(report.id) ended")
            try patiently { try name(report, in: store) }
        }
        try patiently { try store.close() }
    }

    /// Tries again while another process has the store, as the agent does later: on a busy disk one may wait its turn for
    /// longer than a single try lasts.
    private static func patiently<Result>(_ body: () throws -> Result) throws -> Result {
        while true {
            do { return try body() } catch StoreError.busy { continue }
        }
    }

    /// An agent in the middle of a stall.
    static func stall(_ path: String) throws {
        var random = SystemRandomNumberGenerator()
        let run = thisProcess(&random)
        let store = try AgentStore(path: path, run: run)
        let report = makeReport(run, &random)
        try store.record(report, images: images)
        say("\(report.id) open")
        while true { pause() }
    }

    /// Another program in the middle of a transaction.
    static func hold(_ path: String) {
        var connection: OpaquePointer?
        guard sqlite3_open(path, &connection) == SQLITE_OK,
            sqlite3_exec(connection, "begin immediate", nil, nil, nil) == SQLITE_OK
        else { exit(1) }
        say("held")
        while true { pause() }
    }

    static func name(_ report: StallReport, in store: AgentStore) throws {
        let unknown = try store.unsymbolized(report.samples.flatMap(\.locations))
        let names = unknown.map { location in
            var frame = Frame(location)
            frame.function = "function at \(location.offset)"
            return (location, [frame])
        }
        try store.symbolize(Dictionary(uniqueKeysWithValues: names))
    }

    static func ingest(_ paths: [String], into central: String, partLimit: Int = 50_000) throws {
        let ingest = try Ingest(into: central, grouper: PlainGrouper(), partLimit: partLimit)
        let summary = try ingest.run(
            paths, progress: { say("\($0.filesDone) of \($0.fileCount)") })
        try ingest.close()
        let (added, changed) = (summary.addedCount, summary.changedCount)
        say("added \(added) changed \(changed) skipped \(summary.skippedCount)")
    }

    static let images = [
        Image(
            path: "/opt/victim", buildID: BuildID(bytes: Array(1...20)),
            loadAddress: 0x5555_0000_0000,
            endAddress: 0x5555_0010_0000)
    ]

    static func makeReport(
        _ run: ProcessRun, _ random: inout some RandomNumberGenerator
    ) -> StallReport {
        let samples = (0..<3).map { number in
            Sample(
                offset: .milliseconds(125 * number), weight: .milliseconds(125),
                thread: ThreadID(rawValue: 7),
                method: .signal,
                locations: (0..<20).map { depth in
                    CodeLocation(
                        imagePath: images[0].path, buildID: images[0].buildID,
                        offset: UInt64(depth) << 8 | random.next(upperBound: depth < 3 ? 32 : 2),
                        kind: depth == 0 ? .interrupted : .returnAddress)
                })
        }
        let start = now()
        return StallReport(
            id: UniqueID(version7At: start, random: &random), run: run, loop: "main",
            mode: "default",
            phase: .timer, start: start, duration: .milliseconds(250),
            threshold: .milliseconds(250),
            state: .open, samples: samples)
    }

    static func thisProcess(_ random: inout some RandomNumberGenerator) -> ProcessRun {
        let status = contents(of: "/proc/self/stat")
        let fields = status.drop { $0 != ")" }.split(separator: " ")
        let boot = contents(of: "/proc/sys/kernel/random/boot_id")
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, host.count - 1)
        return ProcessRun(
            id: UniqueID(version7At: now(), random: &random), app: "victim", version: "1.0",
            buildID: nil,
            host: host.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }, pid: getpid(),
            bootID: String(boot.prefix { $0 != "\n" }),
            startTicks: fields.count > 20 ? UInt64(fields[20]) ?? 0 : 0, started: now())
    }

    static func now() -> UnixTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UnixTime(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }

    static func contents(of path: String) -> String {
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
