import Foundation
import StallAnalysis
import StallFormats
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import StallIngest
@testable import stallctl

/// Goal: each row of a file that `ingest` deletes or archives is in the store, whatever its kind.
/// Method: agents write rows of all kinds. Copies of their stores with and without a log, central stores of stores and
/// of lines, some of them pruned, stores of cloned machines and files of lines are imported in a random mix with
/// prunes. The content of each deleted file is read from a second copy.
@Suite struct LostRowsTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `no row of a file that goes is lost`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            var play = try FilePlay(seed: seed, in: directory, prunes: seed % 2 == 0)
            for _ in 0..<30 { try play.step() }
            try play.ingestAll()
            let removed = try play.removedFiles()
            #expect(removed.count > 2)
            let lost = try play.missing(from: removed)
            #expect(lost.isEmpty, "\(lost.count) rows, such as \(lost.prefix(3))")
            guard !play.prunes else { return }
            // The program's own answer: all of them again bring nothing.
            let before = try StoreContent(play.central, withNamers: false)
            for file in removed.shuffled(using: &play.random) {
                try ingest([play.saved(file)], into: play.central)
            }
            let difference = try StoreContent(play.central, withNamers: false)
                .difference(from: before)
            #expect(difference.isEmpty, "\(difference.joined(separator: "\n"))")
        }
    }
}

/// The rows of a file, each by what it is of.
private struct HeldRows {
    var reports: [String: Int64] = [:]
    /// Watched nanoseconds by process, loop, threshold and time.
    var exposures: [String: Int64] = [:]
    /// The largest count, by process and reason, and by process, loop, place and reason.
    var losses: [String: Int64] = [:]
    var suppressions: [String: Int64] = [:]
    var runs: Set<String> = []
    var loops: Set<String> = []
    /// Locations with names.
    var locations: Set<String> = []
    var images: Set<String> = []
    /// Stalls that only roll-ups count.
    var rolledUpCount = 0

    init(_ path: String) throws {
        let connection = try Connection(to: path, as: path, .readOnly)
        defer { try? connection.close() }
        let process = "(select hex(uuid) from process_run where process_run.id = run)"
        let loop = """
            (select hex(uuid) || name || '|' || threshold_ns from loop
                join process_run on process_run.id = run where loop.id = loop)
            """
        func read(_ query: String, _ body: (String, Int64) -> Void) throws {
            let rows = try connection.prepare(query)
            while try rows.step() { body(rows.text(at: 0), try rows.integer(at: 1)) }
        }
        func keep(_ rows: inout [String: Int64], _ query: String) throws {
            var found = rows
            try read(query) { found[$0] = max(found[$0] ?? 0, $1) }
            rows = found
        }
        try keep(&reports, "select hex(id), start_us from report")
        try keep(
            &exposures,
            "select \(loop.replacing("= loop)", with: "= exposure.loop)")) || start_us, watched_ns from exposure"
        )
        try keep(
            &losses, "select \(process) || reason, sum(report_count) from loss group by 1, source")
        try keep(
            &suppressions,
            """
            select \(loop.replacing("= loop)", with: "= suppression.loop)")) || place || '|' || reason,
                sum(stall_count) from suppression group by 1, source
            """)
        try read("select hex(uuid) || app || version || host, 0 from process_run") {
            key, _ in runs.insert(key)
        }
        try read(
            "select \(loop.replacing("= loop)", with: "= watched_loop.loop)")), 0 from watched_loop"
        ) { key, _ in loops.insert(key) }
        try read(
            """
            select distinct location.hash, 0 from location_frame
                join location on location.id = location_frame.location
            """
        ) { key, _ in locations.insert(key) }
        try read(
            """
            select (select hex(uuid) from process_run where process_run.id = image_load.run)
                || ifnull(path, '-') || load_address, 0
            from image_load join image on image.id = image_load.image
            """
        ) { key, _ in images.insert(key) }
        try read("select '', ifnull(sum(report_count), 0) from rollup where day_count = 1") {
            _, count in rolledUpCount = max(0, Int(count) - reports.count)
        }
    }
}

/// Agents, the files that come of them, and a central store.
private struct FilePlay {
    var random: SeededGenerator
    let directory: URL
    let prunes: Bool
    private var agents: [(path: String, writer: RowWriter)] = []
    private var fileCount = 0

    init(seed: UInt64, in directory: URL, prunes: Bool) throws {
        random = SeededGenerator(seed: seed)
        (self.directory, self.prunes) = (directory, prunes)
        for name in ["agents", "in", "saved", "archive"] {
            try FileManager.default.createDirectory(
                at: directory.appending(path: name), withIntermediateDirectories: false)
        }
        for number in 0..<3 {
            agents.append(
                (
                    path("agents/\(number)"),
                    RowWriter(seed: seed &* 100 &+ UInt64(number), app: "app\(number)")
                ))
            try agents[number].writer.write(12, to: agents[number].path)
        }
    }

    private func path(_ name: String) -> String { directory.appending(path: name).path }
    var central: String { path("c") }
    func saved(_ file: String) -> String { path("saved/\(file)") }

    private func copy(_ from: String, _ to: String) throws {
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: from + suffix) {
            try FileManager.default.copyItem(atPath: from + suffix, toPath: to + suffix)
        }
    }

    /// Sends a file in, and keeps a copy of it.
    private mutating func send(_ from: String, as suffix: String = "") throws {
        fileCount += 1
        try copy(from, path("in/\(fileCount)\(suffix)"))
        try copy(from, saved("\(fileCount)\(suffix)"))
    }

    mutating func step() throws {
        let number = Int.random(in: agents.indices, using: &random)
        let agent = agents[number].path
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2:
            try agents[number].writer.write(Int.random(in: 1...20, using: &random), to: agent)
        case 3, 4: try send(agent)
        case 5:
            // Its agent has it open: the newest rows are in the log.
            let run = agents[number].writer.generator.run
            let store = try AgentStore(path: agent, run: run)
            try store.record(
                LoopExposure(
                    run: run, loop: "late", threshold: .milliseconds(250),
                    start: UnixTime(microseconds: 1_650_000_000_000_000 + Int64(fileCount)),
                    watched: .seconds(60)))
            try store.countLosses(fileCount + 1, reason: .dropped)
            try send(agent)
            try store.close()
        case 6:
            guard agents.count < 6 else { return }
            let clone = path("agents/\(agents.count)")
            try copy(agent, clone)
            agents.append((clone, RowWriter(seed: random.next(), app: "app\(number)")))
            try agents[agents.count - 1].writer.write(6, to: clone)
        case 7, 8:
            var lines = try allLines(of: agent).shuffled(using: &random)
            lines.removeLast(Int.random(in: 0...lines.count / 2, using: &random))
            if Int.random(in: 0..<4, using: &random) == 0 {
                lines.append(Array("{\"schema\":\"stallctl.report/2\"}\n".utf8))
            }
            try Data(lines.flatMap { $0 }).write(to: URL(fileURLWithPath: path("lines")))
            try send(path("lines"), as: ".jsonl")
        case 9:
            let some = agents.map(\.path).filter { _ in Bool.random(using: &random) }
            let other = path("central\(fileCount)")
            switch Int.random(in: 0..<3, using: &random) {
            case 0: try ingest(some.isEmpty ? [agent] : some, into: other)
            case 1:
                let lines = try allLines(of: agent).shuffled(using: &random)
                try ingest(lines: Array(lines.prefix(lines.count / 2)), into: other)
            default:
                // Rows besides reports only.
                let lines = try allLines(of: agent).filter {
                    !String(decoding: $0, as: UTF8.self).contains("stallctl.report/")
                }
                try ingest(lines: lines, into: other)
            }
            let time = try Self.starts(other).sorted().randomElement(using: &random)
            if let time, Int.random(in: 0..<4, using: &random) == 0 {
                _ = try pruneStore(
                    path: other, keeping: Retention(daysSince: time), grouper: DefaultGrouper())
            }
            try send(other)
        case 10: try ingestAll()
        default:
            guard prunes, FileManager.default.fileExists(atPath: central) else { return }
            let times = try Self.starts(central).sorted()
            guard let time = times.randomElement(using: &random) else { return }
            _ = try pruneStore(
                path: central, keeping: Retention(daysSince: time), grouper: DefaultGrouper())
        }
    }

    private static func starts(_ path: String) throws -> [UnixTime] {
        try HeldRows(path).reports.values.map { UnixTime(microseconds: $0) }
    }

    func ingestAll() throws {
        var job = IngestJob(store: central, paths: [path("in")])
        job.cleanup = fileCount % 2 == 0 ? .delete : .archive(directory: path("archive"))
        _ = try job.run(
            grouper: DefaultGrouper(), quarantine: Quarantine(store: central),
            lines: { StallFormats.ReportLines(descriptor: $0, closesIt: $1) })
    }

    func removedFiles() throws -> [String] {
        let rest = Set(try FileManager.default.contentsOfDirectory(atPath: path("in")))
        return try FileManager.default.contentsOfDirectory(atPath: path("saved"))
            .filter { !$0.hasSuffix("-wal") && !rest.contains($0) }.sorted()
    }

    /// The rows of removed files that the central store lacks. Of pruned reports only roll-ups know.
    func missing(from removed: [String]) throws -> [String] {
        let held = try HeldRows(central)
        var missing: [String] = []
        var reports: [String: Int64] = [:]
        for file in removed {
            let rows: HeldRows
            if file.hasSuffix(".jsonl") {
                let store = path("of-\(file)")
                try ingest([saved(file)], into: store)
                rows = try HeldRows(store)
            } else {
                let store = path("of-\(file)")
                try copy(saved(file), store)
                rows = try HeldRows(store)
            }
            func add(_ kind: String, _ keys: some Sequence<String>) {
                missing += keys.map { "\(file): \(kind) \($0)" }
            }
            reports.merge(rows.reports) { known, _ in known }
            add("exposure", rows.exposures.filter { held.exposures[$0.key] ?? 0 < $0.value }.keys)
            add(
                "suppression",
                rows.suppressions.filter { held.suppressions[$0.key] ?? 0 < $0.value }.keys)
            if rows.rolledUpCount > 0 { missing.append("\(file): \(rows.rolledUpCount) roll-ups") }
            if !prunes {
                add("report", rows.reports.keys.filter { held.reports[$0] == nil })
                add("loss", rows.losses.filter { held.losses[$0.key] ?? 0 < $0.value }.keys)
                add("run", rows.runs.subtracting(held.runs))
                add("loop", rows.loops.subtracting(held.loops))
                add("name", rows.locations.subtracting(held.locations))
                add("image", rows.images.subtracting(held.images))
            }
        }
        guard prunes else { return missing }
        // Roll-ups count what was pruned, and everything that is in no file any more.
        let counted = held.reports.count + held.rolledUpCount
        if counted < reports.count { missing.append("\(reports.count - counted) reports by count") }
        return missing
    }
}
