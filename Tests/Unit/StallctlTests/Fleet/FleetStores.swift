// Stores with every kind of row, as agents write them, for tests of what travels between stores.

import Foundation
import Glibc
import StallAnalysis
import StallArchive
import StallFormats
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport

@testable import stallctl

/// Writes reports, watched time, losses and suppressed stalls of one process, as an agent does.
struct RowWriter {
    var generator: ReportGenerator
    private var minute: Int64 = 1_700_000_000_000_000

    init(seed: UInt64, app: String = "photos") {
        generator = ReportGenerator(seed: seed, app: app)
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &generator.random)
    }

    mutating func write(_ count: Int, to path: String, state: StallState? = .ended) throws {
        let store = try AgentStore(path: path, run: generator.run)
        for _ in 0..<count {
            switch number(0...9) {
            case 0...3: try writeReport(to: store, state: state)
            case 4...6: try store.record(exposure())
            case 7:
                try store.countLosses(
                    number(1...1000),
                    reason: LossReason.allCases.randomElement(using: &generator.random)!)
            default:
                try store.countSuppressed(suppressed(), threshold: .milliseconds(250))
            }
        }
        try store.close()
    }

    private mutating func writeReport(to store: AgentStore, state: StallState?) throws {
        var report = generator.report(state: state)
        report.loop = ["main", "a \"loop\",\r\n\u{202e}é", "a\0b", " "][number(0...3)]
        try store.record(report, images: generator.images)
        // Some places are never looked up.
        guard number(0...4) > 0 else { return }
        let places = Set(try store.unsymbolized(Array(report.places)))
        try store.symbolize(generator.names(of: report).filter { places.contains($0.key) })
    }

    private mutating func exposure() -> LoopExposure {
        minute += Int64(number(1...100_000)) * 1_000_000
        let huge = number(0...20) == 0
        return LoopExposure(
            run: generator.run, loop: ["main", "decoder"][number(0...1)],
            threshold: .milliseconds(250), start: UnixTime(microseconds: minute),
            watched: .nanoseconds(huge ? 34_000_000_000_000_001 : number(0...60_000_000_007)),
            busy: .nanoseconds(number(0...60_000_000_007)),
            readyDelay: .nanoseconds(number(0...1_000_003)), microStallCount: number(0...100),
            microStallTime: .nanoseconds(number(0...60_000_007)),
            lengths: LengthHistogram(
                counts: Dictionary(
                    [
                        (number(0...271), number(1...1_000_000)),
                        (number(0...271), 1 << number(0...40)),
                    ], uniquingKeysWith: +)))
    }

    private mutating func suppressed() -> SuppressedStalls {
        SuppressedStalls(
            run: generator.run, loop: "main",
            place: Int64(number(-3...3)) &* 1_234_567_890_123_456_789,
            reason: [.place, .hour, .debugger][number(0...2)], count: number(1...50),
            total: .nanoseconds(number(0...60_000_000_007)))
    }
}

/// Every row of a store, as `export --format jsonl --rows all` writes them.
func allLines(of path: String) throws -> [[UInt8]] {
    let store = try ReportStore.open(path: path)
    var lines: [[UInt8]] = []
    var writer = StoreLines { $0.signature(by: DefaultGrouper()).group }
    try store.forEachOtherRow { lines.append(try writer.line($0)) }
    try store.forEachReport(ReportFilter(), in: .newestFirst, limit: nil) {
        report, origin, lookup in
        lines.append(
            try ReportText(
                report, group: report.signature(by: DefaultGrouper()).group, origin: origin
            ).line(images: lookup.images(ofRun: report.run.id)))
    }
    return lines
}

/// Ingests stores, and files of lines.
@discardableResult
func ingest(_ paths: [String], into central: String) throws -> IngestSummary {
    let ingest = try Ingest(into: central, grouper: DefaultGrouper())
    defer { try? ingest.close() }
    return try ingest.run(paths) { path throws(StoreError) in
        ReportLines(descriptor: open(path, O_RDONLY | O_CLOEXEC), closesIt: true)
    }
}

/// Writes lines to a file and ingests it.
@discardableResult
func ingest(lines: [[UInt8]], into central: String) throws -> IngestSummary {
    let path = central + "-\(UUID().uuidString).jsonl"
    try Data(lines.flatMap { $0 }).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try ingest([path], into: central)
}
