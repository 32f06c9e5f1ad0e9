// The columns of `export --format csv`. Their names are a contract.

internal import StallAnalysis
internal import StallFormats
internal import StallModel

/// One row per report.
enum ReportCSV {
    static let header = [
        "id", "start", "duration_ms", "cpu_ms", "state", "verdict", "app", "version", "build_id",
        "host",
        "pid", "loop", "mode", "phase", "activity", "signature", "title", "wait", "frames",
        "sample_count",
        "stack", "ending", "cause", "cause_confidence", "threshold_ms", "detection_delay_ms",
        "holder", "holder_thread",
    ]

    /// - Parameter outline: How many samples there are and the heaviest stack, of a row that was read without them.
    static func fields(
        _ row: ReportRow, outline: (sampleCount: Int, stack: String)? = nil
    ) -> [CSVWriter.Field] {
        [
            .plain(row.id), .plain(row.start), .plain("\(row.durationMs)"), .plain("\(row.cpuMs)"),
            .plain(row.state), .plain(row.verdict), .text(row.app), .text(row.version),
            .plain(row.buildId ?? ""), .text(row.host), .plain("\(row.pid)"), .text(row.loop),
            .text(row.mode), .plain(row.phase), .text(row.activity ?? ""), .plain(row.signature),
            .text(row.title), .plain(row.wait ?? ""), .text(row.frames.joined(separator: " <- ")),
            .plain("\(outline?.sampleCount ?? row.samples.count)"),
            .text(outline?.stack ?? heaviestStack(of: row)),
            .plain(row.ending ?? ""), .plain(row.cause?.class ?? ""),
            .plain(row.cause.map { "\($0.confidence)" } ?? ""), .plain("\(row.thresholdMs)"),
            .plain("\(row.detectionDelayMs)"), .text(row.cause?.holderName ?? ""),
            .plain(row.cause?.lockHolder.map { "\($0.thread)" } ?? ""),
        ]
    }

    private static func heaviestStack(of row: ReportRow) -> String {
        let heaviest = row.samples.filter { !$0.late && !$0.stack.isEmpty }
            .max { $0.weightMs < $1.weightMs }
        return (heaviest?.stack ?? []).map(\.qualifiedName).joined(separator: " <- ")
    }
}

/// One row per function on a stack.
enum FrameCSV {
    static let header = [
        "id", "sample", "offset_ms", "weight_ms", "late", "frame", "function", "build_id", "offset",
        "file", "line", "inlined", "guessed", "image", "app", "version", "loop", "thread",
    ]

    static func rows(_ report: ReportRow) -> [[CSVWriter.Field]] {
        report.samples.enumerated().flatMap { number, sample in
            sample.stack.enumerated().map { position, frame in
                [
                    .plain(report.id), .plain("\(number)"), .plain("\(sample.offsetMs)"),
                    .plain("\(sample.weightMs)"), .plain("\(sample.late)"), .plain("\(position)"),
                    .text(frame.qualifiedName), .plain(frame.buildId ?? ""), .plain(frame.offset),
                    .text(frame.file ?? ""), .plain(frame.line.map(String.init) ?? ""),
                    .plain("\(frame.inlined)"), .plain("\(frame.guessed)"),
                    .text(frame.image ?? ""), .text(report.app), .text(report.version),
                    .text(report.loop), .plain("\(sample.thread)"),
                ]
            }
        }
    }
}

extension CauseRow {
    /// The name of the thread that held the lock, or the process that held the file lock: `process 4711 'sqlite3'`.
    fileprivate var holderName: String? {
        if let lockHolder { return lockHolder.name ?? "thread \(lockHolder.thread)" }
        return evidence.first { $0.name == EvidenceName.heldBy.rawValue }?.value
    }
}

extension FrameRow {
    /// ``image`function``, so that no spreadsheet takes a symbol that begins with `-` or `@` for a formula.
    var qualifiedName: String {
        let name = image.map { $0.split(separator: "/").last.map(String.init) ?? $0 } ?? "?"
        return name + "`" + (function ?? offset)
    }
}
