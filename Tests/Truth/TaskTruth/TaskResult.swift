// One watched process, and the comparison of what its agent stored with what its jobs recorded.

import CLinux
import CTaskHook
import Foundation
import StallAgent
import StallArchive
import StallModel
import StallQuery

/// Something is broken on purpose.
let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"

/// The findings of a part. One line of JSON from its process.
struct TaskResult: Codable {
    var planted = 0, missed = 0, uncounted = 0, isFalse = 0
    /// Long spans without a report, by the agent's count.
    var counted = 0
    /// Spans that continue another one, because the task did not suspend.
    var joined = 0
    var healthy = 0, borderline = 0, reports = 0, threads = 0, entries = 0
    var notes: [String] = []

    static func + (one: Self, other: Self) -> Self {
        var sum = one
        sum.planted += other.planted
        sum.missed += other.missed
        sum.uncounted += other.uncounted
        sum.isFalse += other.isFalse
        sum.counted += other.counted
        sum.joined += other.joined
        sum.healthy += other.healthy
        sum.borderline += other.borderline
        sum.reports += other.reports
        sum.threads += other.threads
        sum.entries += other.entries
        sum.notes = Array((one.notes + other.notes).prefix(40))
        return sum
    }
}

/// Plants until there are enough, or the time is up; prints the findings.
func playPart(number: Int, plants: Int, seconds: Double) throws -> Never {
    let directory = FileManager.default.temporaryDirectory.appending(path: "truth-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let store = directory.appending(path: "stalls.sqlite").path
    let threshold = [0.1, 0.06, 0.08][number % 3]
    var configuration = StallMonitor.Configuration(
        app: "task-truth", version: "1", store: store, symbolizes: false)
    configuration.limits = .none
    let monitor = try StallMonitor.start(configuration)
    // Before the agent's hook, which passes jobs on to it.
    task_hook_set()
    monitor.watchTasks(threshold: .nanoseconds(Int64(threshold * 1e9)))
    TaskVictims.waitForThreads()
    let truth = TaskTruth()
    let victims = TaskVictims(threshold: threshold, truth: truth)
    let end = monotonic() + UInt64(seconds * 1e9)
    var count = 0
    while count < plants, monotonic() < end {
        count += victims.plant()
        let pause = Double.random(in: 0..<1)
        if pause < 0.2 {
            usleep(.random(in: 1_000...400_000))
        } else if pause < 0.3 {
            victims.playHealthy()
        } else {
            // Most threads end meanwhile; now and then a few were busy again in between, and live on.
            if pause < 0.5 {
                usleep(.random(in: 500_000...4_000_000))
                victims.playHealthy()
            }
            usleep(.random(in: 5_300_000...6_600_000))
        }
    }
    monitor.stop()
    let spans = truth.spans.withoutSuspensions
    var result = TaskResult(spans, threshold: Int64(threshold * 1e6))
    result.joined = truth.spans.count - spans.count
    let reports = try ReportStore.open(path: store)
    // Up to 100 ms a threshold leaves no room for micro-stalls: these are long spans that cannot be proven to be stalls.
    result.counted = try reports.exposure(ReportFilter()).reduce(0) { $0 + $1.microStallCount }
    result.judge(
        try reports.reports(ReportFilter(), limit: nil), spans,
        threshold: Int64(threshold * 1e6))
    result.healthy = truth.healthy
    result.threads = truth.threads
    result.entries = Int(stall_worker_count())
    try FileManager.default.removeItem(at: directory)
    print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
    exit(0)
}

extension Span {
    var own: Int64 { duration - queued }
    /// Its own time is at least the threshold: no tolerance. The calls of an actor by several tasks are told apart only
    /// by the watchdog's looks, half a threshold apart: one is known to be long enough when two looks have seen it a
    /// threshold apart, and both may be late.
    func mustBeReported(_ threshold: Int64) -> Bool {
        own >= (isAmongOthers ? threshold * 25 / 16 : threshold)
    }
    /// The agent's tolerance; StallTruth has the same.
    func mayBeReported(_ threshold: Int64) -> Bool { own >= threshold - threshold / 64 }

    /// Beside it on the same thread, or as long.
    func isNear(_ report: StallReport) -> Bool {
        let late = start - report.start.microseconds
        let length = report.duration.nanoseconds / 1000
        return late < length && late + duration > 0
            && (duration > length / 2 || report.samples.contains { $0.thread.rawValue == thread })
    }

    /// How far a report is from this span; nil if it cannot be of it. An actor's job may have begun before.
    func distance(to report: StallReport) -> Int64? {
        let threads = Set(report.samples.map(\.thread.rawValue))
        if !threads.isEmpty, !threads.contains(thread) { return nil }
        let length = report.duration.nanoseconds / 1000
        let late = start - report.start.microseconds
        let excess = start + duration - (report.start.microseconds + length)
        guard abs(late) < max(duration, length) / 2, abs(excess) < max(duration, length) / 2 else {
            return nil
        }
        return abs(late) + abs(excess)
    }
}

extension TaskResult {
    init(_ spans: [Span], threshold: Int64) {
        self.init()
        for span in spans where span.isPlanted {
            if span.mustBeReported(threshold) { planted += 1 } else { borderline += 1 }
        }
    }

    mutating func judge(_ all: [StallReport], _ spans: [Span], threshold: Int64) {
        var reports = all
        if isSabotaged { reports = all.enumerated().filter { $0.offset % 20 != 0 }.map(\.element) }
        self.reports = reports.count
        // The nearest pairs first.
        var pairs: [(distance: Int64, span: Int, report: Int)] = []
        for (index, span) in spans.enumerated() where span.duration >= threshold / 2 {
            for (number, report) in reports.enumerated() {
                if let distance = span.distance(to: report) {
                    pairs.append((distance, index, number))
                }
            }
        }
        pairs.sort { $0.distance < $1.distance }
        var (reportOf, spanOf): ([Int: Int], [Int: Int]) = ([:], [:])
        for pair in pairs where reportOf[pair.span] == nil && spanOf[pair.report] == nil {
            reportOf[pair.span] = pair.report
            spanOf[pair.report] = pair.span
        }
        var left = isSabotaged ? 0 : counted
        for (index, span) in spans.enumerated()
        where span.isPlanted && span.mustBeReported(threshold) {
            let report = reportOf[index].map { reports[$0] }
            if let report, report.verdict == .stalled, !report.samples.isEmpty { continue }
            missed += 1
            let isCounted = report != nil || left > 0
            if report == nil, left > 0 { left -= 1 }
            if !isCounted { uncounted += 1 }
            note(
                "\(isCounted ? "missed" : "uncounted"): \(span)"
                    + (report.map {
                        "; report \($0.verdict) \($0.duration), \($0.samples.count) samples"
                    } ?? ""))
        }
        for (number, report) in reports.enumerated() where report.verdict == .stalled {
            if let span = spanOf[number].map({ spans[$0] }), span.mayBeReported(threshold) {
                continue
            }
            isFalse += 1
            note(
                "false: \(report.start.microseconds) \(report.duration) for \(threshold) us, cpu \(report.cpuTime) "
                    + "\(report.samples.count) samples, thread \(report.samples.first?.thread.rawValue ?? 0)"
                    + spans.filter { $0.isNear(report) }.map { "; \($0)" }.joined())
        }
    }

    private mutating func note(_ text: String) { if notes.count < 20 { notes.append(text) } }
}
