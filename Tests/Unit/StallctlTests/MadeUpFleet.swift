// Reports of a few processes, at random: the same seed makes the same ones.

import Foundation
import StallModel
import StallStore
import TestSupport

/// Some processes with their reports: whole stacks and cut ones, late samples, every verdict, several apps, versions and
/// hosts over forty days; of some of them it is recorded how long their loops were watched.
struct MadeUpFleet {
    private(set) var runs: [(run: ProcessRun, reports: [StallReport], exposure: [LoopExposure])] =
        []
    private var random: SeededGenerator
    private var number: UInt64 = 0
    /// Many stalls began at the same time or lasted for as long, and some functions are in two images.
    private let hasTies: Bool

    static let begin = SampleReports.noon.microseconds
    static let days: Int64 = 40

    init(seed: UInt64, reportsOfRun count: Int = 30, hasTies: Bool = false) {
        self.hasTies = hasTies
        random = SeededGenerator(seed: seed)
        for (app, version, os, device) in [
            ("photos", "1.0", "iOS 17.4.1", "iPhone14,2"), ("photos", "1.0", nil, "iPhone14,2"),
            ("photos", "2.0", "Debian GNU/Linux 12", nil), ("mail", "2.0", "iOS 17.4.1", nil),
        ] as [(String, String, String?, String?)] {
            var run = SampleReports.run(
                app: app, version: version, host: pick(["web-1", "web-2"]),
                number: 900 + UInt64(runs.count))
            (run.os, run.device) = (os, device)
            let reports = (0..<count).map { _ in report(of: run) }
            // Of half of the processes.
            let isTimed = Bool.random(using: &random)
            runs.append((run, reports, isTimed ? (0..<10).map { exposure(of: run, $0) } : []))
        }
    }

    /// Writes the reports of some of the processes into an agent's store.
    func write(_ indexes: some Sequence<Int>, to path: String) throws {
        for index in indexes {
            let (run, reports, exposure) = runs[index]
            try SampleReports.writeStore(at: URL(fileURLWithPath: path), reports, run: run)
            let store = try AgentStore(path: path, run: run)
            for stretch in exposure { try store.record(stretch) }
            try store.countLosses(3, reason: .dropped)
            try store.countSuppressed(
                SuppressedStalls(
                    run: run, loop: "main", place: 7, reason: .place, count: 1, total: .seconds(1)),
                threshold: .milliseconds(250))
            try store.close()
        }
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values.randomElement(using: &random)!
    }

    private mutating func report(of run: ProcessRun) -> StallReport {
        number += 1
        let verdict: StallVerdict = pick([
            .stalled, .stalled, .stalled, .stalled, .starved, .stopped, .throttled,
        ])
        var report = SampleReports.report(
            number, run: run, state: pick([.ended, .ended, .ended, .hang]), verdict: verdict,
            samples: [])
        report.start = UnixTime(
            microseconds: Self.begin + .random(in: 0..<Self.days * 86_400_000_000, using: &random))
        // To the nanosecond, so that no two are equal.
        report.duration = .nanoseconds(.random(in: 250_000_000..<4_000_000_000, using: &random))
        if hasTies {
            report.start = UnixTime(
                microseconds: Self.begin + .random(in: 0..<Self.days, using: &random)
                    * 86_400_000_000)
            report.duration = .milliseconds(.random(in: 1...4, using: &random) * 500)
        }
        report.loop = pick(["main", "main", "decoder", ""])
        let cause: CauseClass? = pick([nil, .lock, .disk, .cpu])
        report.cause = cause.map { StallCause($0, confidence: 0.9) }
        report.samples = samples(in: report.duration)
        return report
    }

    private mutating func samples(in duration: Duration) -> [Sample] {
        // One callout: most samples show the same callers.
        let path = callers()
        let offsets = (0..<Int.random(in: 0...4, using: &random))
            .map { _ in Int64.random(in: 0..<duration.nanoseconds, using: &random) }.sorted()
        let isLate = offsets.map { _ in Int.random(in: 0..<5, using: &random) == 0 }
        let weights = sampleWeights(
            zip(offsets, isLate).map { $1 ? nil : $0 }, of: duration.nanoseconds)
        return offsets.indices.map { index in
            let innermost: [String] = pick([[], ["fsync"], ["pthread_mutex_lock"], ["usleep"]])
            var names = innermost + path
            // The callers were cut off.
            let isCut = Int.random(in: 0..<3, using: &random) == 0
            let cutCount = 2 + Int.random(in: 0...1, using: &random)
            if isCut { names.removeLast(min(names.count - 1, cutCount)) }
            var frames: [Frame] = []
            for name in names { frames.append(frame(name, isInnermost: frames.isEmpty)) }
            return Sample(
                offset: .nanoseconds(offsets[index]), weight: .nanoseconds(weights[index]),
                isLate: isLate[index], thread: ThreadID(rawValue: 1), method: .signal,
                isTruncated: isCut, locations: SampleReports.locations(frames), frames: frames)
        }
    }

    /// Functions of the app, from the inside, and what began the program.
    private mutating func callers() -> [String] {
        let functions = ["load()", "save()", "draw()", "layout()", "tick()", "refresh()"]
        return functions.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
            + ["main", "__libc_start_call_main"]
    }

    private mutating func frame(_ name: String, isInnermost: Bool) -> Frame {
        let isOfSystem = ["fsync", "pthread_mutex_lock", "usleep", "__libc_start_call_main"]
            .contains(name)
        return SampleReports.frame(
            name,
            image: isOfSystem
                ? SampleReports.libc
                : hasTies
                    ? pick([SampleReports.photos, "/opt/photos/plugin.so"]) : SampleReports.photos,
            offset: name.utf8.reduce(0x1000) { $0 * 31 % 0xffff + UInt64($1) },
            kind: isInnermost ? .interrupted : .returnAddress)
    }

    private mutating func exposure(of run: ProcessRun, _ index: Int) -> LoopExposure {
        LoopExposure(
            run: run, loop: pick(["main", "decoder"]), threshold: .milliseconds(250),
            start: UnixTime(
                microseconds: Self.begin + Int64(index) * Self.days / 10 * 86_400_000_000),
            watched: .seconds(.random(in: 60...7200, using: &random)), busy: .seconds(9))
    }
}
