import Foundation
import StallAnalysis
import StallModel
import StallQuery
import StallStore

@testable import stallctl

/// Reports made by hand, with round numbers, so that every number in a snapshot can be checked by
/// eye.
enum SampleReports {
    /// 2024-11-21T14:00:00Z: not this year, so that the program always shows the year.
    static let noon = UnixTime(microseconds: 1_732_197_600_000_000)

    static func id(_ number: UInt64) -> UniqueID {
        let digits = "01aa5f32" + String(number, radix: 16).padded(with: "0", to: 4)
        return UniqueID(bytes: [UInt8](hexadecimal: digits + "7a0084fa39d02b66c1d7")!)!
    }

    static func run(
        app: String = "photos", version: String = "2.3.0", host: String = "web-2",
        number: UInt64 = 900
    ) -> ProcessRun {
        ProcessRun(
            id: id(number), app: app, version: version,
            buildID: BuildID(bytes: [0xab, 0xcd, 0xef, 0x01]),
            host: host, pid: 4711, bootID: "b00t", startTicks: 12345, started: noon)
    }

    /// The list of one report.
    static func listing(of report: StallReport) -> Listing {
        let entry = Listing.Entry(
            report: summary(report), run: report.run,
            signature: report.signature(by: DefaultGrouper()))
        return Listing(
            entries: [entry], reportCount: 1, shortIDs: ShortIDs(shown: [report.id], among: []))
    }

    /// The same report as ranking sees it: the stacks are numbers.
    static func summary(_ report: StallReport, run: Int = 0) -> ReportSummary {
        var summary = ReportSummary(
            id: report.id, run: run, loop: report.loop, start: report.start,
            duration: report.duration,
            outcome: StallOutcome(report.state), verdict: report.verdict,
            cause: report.cause?.cause, stacks: [])
        summary.delayed = report.delayedTime
        return summary
    }

    static let photos = "/opt/photos/photos"
    static let libc = "/lib/x86_64-linux-gnu/libc.so.6"

    static func frame(
        _ function: String?, image: String? = photos, offset: UInt64 = 0x1f40, file: String? = nil,
        line: Int? = nil, kind: CodeAddressKind = .returnAddress
    ) -> Frame {
        var frame = Frame(
            CodeLocation(
                imagePath: image, buildID: image.map { BuildID(bytes: $0.utf8.prefix(4)) },
                offset: offset,
                kind: kind))
        frame.function = function
        frame.file = file
        frame.line = line
        return frame
    }

    /// A lock waited for by a function of the app, in a timer.
    static let waiting: [Frame] = [
        frame("__lll_lock_wait", image: libc, offset: 0x8d1c0, kind: .interrupted),
        frame("pthread_mutex_lock", image: libc, offset: 0x93c22),
        frame("waitForWorker()", offset: 0x4d12, file: "/src/photos/Sync.swift", line: 88),
        frame(
            "closure #1 in Timeline.tick()", offset: 0x5120, file: "/src/photos/Timeline.swift",
            line: 12),
        frame(nil, offset: 0x9ab0), frame("main", offset: 0x1200),
        frame("__libc_start_call_main", image: libc, offset: 0x2724a),
    ]
    /// The same location, before the lock.
    static let computing: [Frame] = [
        frame("drawComplexLayout(_:)", offset: 0x6100, kind: .interrupted),
        frame("closure #1 in Timeline.tick()", offset: 0x5100), frame("main", offset: 0x1200),
    ]

    static func sample(
        at offset: Int, for weight: Int, _ frames: [Frame], isLate: Bool = false,
        failure: String? = nil
    ) -> Sample {
        Sample(
            offset: .milliseconds(offset), weight: .milliseconds(weight), isLate: isLate,
            thread: ThreadID(rawValue: 4711), method: frames.isEmpty ? nil : .signalFree,
            captureCost: .microseconds(21), failure: failure,
            locations: locations(frames), frames: frames)
    }

    static func locations(_ frames: [Frame]) -> [CodeLocation] {
        frames.map {
            CodeLocation(
                imagePath: $0.imagePath, buildID: $0.buildID, offset: $0.offset, kind: $0.kind,
                isGuessed: $0.isGuessed)
        }
    }

    static let lock = StallCause(
        .lock, confidence: 0.98, shares: [CauseShare(.lock, 0.9), CauseShare(.cpu, 0.1)],
        evidence: [
            CauseEvidence("system call", "futex 0x5570c0de1040"), CauseEvidence("lock", "a mutex"),
        ],
        holder: LockHolder(
            thread: ThreadID(rawValue: 4719), name: "compactor", isDeadlock: false))

    /// The one that holds the lock.
    static let compactor = ThreadSnapshot(
        thread: ThreadID(rawValue: 4719), name: "compactor", role: .holder, method: .signalFree,
        locations: locations(compacting), frames: compacting)
    static let compacting = [
        frame("fsync", image: libc, offset: 0xf83a0, kind: .interrupted),
        frame("compactDatabase()", offset: 0x7210, file: "/src/photos/Store.swift", line: 212),
    ]

    static func report(
        _ number: UInt64 = 1, run: ProcessRun = run(), state: StallState = .ended,
        verdict: StallVerdict = .stalled, startingAfter seconds: Int64 = 0,
        lasting milliseconds: Int = 1840,
        samples: [Sample]? = nil
    ) -> StallReport {
        let hasCause = samples == nil && verdict == .stalled
        return StallReport(
            id: id(number), run: run, loop: "main", mode: "default", phase: .timer,
            start: UnixTime(microseconds: noon.microseconds + seconds * 1_000_000 + 417_000),
            duration: .milliseconds(milliseconds), cpuTime: .milliseconds(92),
            threshold: .milliseconds(250),
            detectionDelay: .microseconds(300), state: state, verdict: verdict,
            samples: samples ?? [
                sample(at: 125, for: 184, computing), sample(at: 250, for: 566, waiting),
                sample(at: 750, for: 1090, waiting),
                sample(at: 1845, for: 0, computing, isLate: true),
            ], cause: hasCause ? lock : nil,
            threads: hasCause ? [compactor] : [])
    }

    /// A store as an agent leaves it.
    static func writeStore(
        at url: URL, _ reports: [StallReport], run: ProcessRun = run()
    ) throws {
        let store = try AgentStore(path: url.path, run: run)
        for report in reports {
            let images = [
                Image(
                    path: SampleReports.photos, buildID: BuildID(bytes: "/opt".utf8),
                    loadAddress: 0x5500_0000_0000, endAddress: 0x5500_0100_0000)
            ]
            try store.record(report, images: images)
            let frames =
                report.samples.flatMap { zip($0.locations, $0.frames) }
                + report.threads.flatMap { zip($0.locations, $0.frames) }
            try store.symbolize(Dictionary(frames.map { ($0, [$1]) }) { first, _ in first })
        }
        try store.close()
    }
}
