// The columns of `export --format csv`, and of `list --csv`. Their names are a contract.

internal import StallAnalysis
internal import StallFormats
internal import StallModel
internal import StallQuery

/// One row per report, in a list.
extension ListingRow {
    static let csvHeader = [
        "id", "start", "duration_ms", "state", "verdict", "app", "version", "host", "pid", "loop",
        "signature", "title", "wait", "frames", "cause", "ending", "os",
        "device",
    ]

    var csvFields: [CSVWriter.Field] {
        [
            .plain(id), .plain(start), .plain("\(durationMs)"), .plain(state), .plain(verdict),
            .text(app), .text(version), .text(host), .plain("\(pid)"), .text(loop),
            .plain(signature),
            .text(title), .plain(wait ?? ""), .text(frames.joined(separator: " <- ")),
            .plain(cause ?? ""), .plain(ending ?? ""), .text(os ?? ""), .text(device ?? ""),
        ]
    }
}

/// One row per report, with its stack.
enum ReportCSV {
    static let header = [
        "id", "start", "duration_ms", "cpu_ms", "state", "verdict", "app", "version", "build_id",
        "host",
        "pid", "loop", "mode", "phase", "activity", "signature", "title", "wait", "frames",
        "sample_count",
        "stack", "ending", "cause", "cause_confidence", "threshold_ms", "detection_delay_ms",
        "holder", "holder_thread", "own_ms", "os", "device",
    ]

    /// The row of a report with its frames.
    static func fields(_ report: StallReport, _ group: ReportGroup) -> [CSVWriter.Field] {
        let heaviest = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
            .max { $0.weight < $1.weight }
        let stack = (heaviest?.frames ?? []).map(\.qualifiedName).joined(separator: separator)
        return stall(report) + process(report) + callout(report)
            + self.group(group, report.cause?.cause) + [.plain("\(report.samples.count)")]
            + [.text(stack)] + outcome(report) + machine(report)
    }

    // The row in parts: an export of millions writes those that many rows have in common once.

    static let separator = " <- "

    static func stall(_ report: StallReport) -> [CSVWriter.Field] {
        [
            .plain(report.id.description), .plain(report.start.rfc3339),
            .plain("\(report.duration.milliseconds)"), .plain("\(report.cpuTime.milliseconds)"),
            .plain(report.state.word), .plain(report.verdict.word),
        ]
    }

    static func process(_ report: StallReport) -> [CSVWriter.Field] {
        [
            .text(report.run.app), .text(report.run.version),
            .plain(report.run.buildID?.description ?? ""), .text(report.run.host),
            .plain("\(report.run.pid)"), .text(report.loop),
        ]
    }

    static func callout(_ report: StallReport) -> [CSVWriter.Field] {
        [.text(report.mode), .plain(report.phase.word), .text(report.activity ?? "")]
    }

    static func group(_ group: ReportGroup, _ cause: CauseClass?) -> [CSVWriter.Field] {
        [
            .plain(hexadecimal(group.signature)), .text(group.title(under: cause)),
            .plain(group.wait?.rawValue ?? ""),
            .text(group.frames.joined(separator: separator)),
        ]
    }

    static func outcome(_ report: StallReport) -> [CSVWriter.Field] {
        [
            .plain(report.ending?.word ?? ""), .plain(report.cause?.cause.word ?? ""),
            .plain(report.cause.map { "\($0.confidence)" } ?? ""),
            .plain("\(report.threshold.milliseconds)"),
            .plain("\(report.detectionDelay.milliseconds)"),
            .text(report.cause?.holderName ?? ""),
            .plain(report.cause?.holder.map { "\($0.thread.rawValue)" } ?? ""),
            .plain(
                report.delayedTime > .zero
                    ? "\((report.duration - report.delayedTime).milliseconds)" : ""),
        ]
    }

    static func machine(_ report: StallReport) -> [CSVWriter.Field] {
        [.text(report.run.os ?? ""), .text(report.run.device ?? "")]
    }
}

/// The same rows of reports whose stacks are numbers.
struct OutlineCSV {
    private struct Group: Hashable {
        var number: Int64
        var cause: CauseClass?
    }

    private struct Callout: Equatable {
        var mode: String
        var phase: LoopPhase
        var activity: String?
    }

    private struct Process {
        var loop: Int64
        var cells: [UInt8] = []
        /// Of the row's end.
        var machine: [UInt8] = []
    }

    // Cells that were written before.
    /// By the last digits of the loops' numbers: a fleet has many, and the reports of one follow each other.
    private var processes: [Process?] = Array(repeating: nil, count: 4096)
    /// Few, of which the last ones are likely.
    private var callouts: [(callout: Callout, cells: [UInt8])] = []
    private var groups: [Group: [UInt8]] = [:]
    /// The names of all locations that were on a stack so far, one behind the other, and where those of each end.
    private var names: [UInt8] = []
    private var nameEnds: [Int] = []
    private var arePlain: [Bool] = []
    private var places: [Int32] = []
    /// By the last digits of the stacks' numbers: most reports are of few stacks.
    private var stacks: [StackNames?] = Array(repeating: nil, count: 4096)

    /// The names on a stack as a text.
    private struct StackNames {
        var stack: Int64
        var text: [UInt8] = []
        /// Whether all names are plain.
        var isPlain = true
    }

    /// Appends the fields of a report.
    mutating func append(
        _ outline: ReportOutline, _ lookup: any OutlineLookup, by writer: CSVWriter,
        to row: inout [UInt8]
    ) throws {
        let report = outline.report
        Self.appendStall(report, to: &row)
        let process = process(of: outline, writer)
        row += process.cells
        appendCallout(report, writer, to: &row)
        appendGroup(outline, writer, to: &row)
        row.append(decimal: Int64(outline.samples.count))
        row.append(comma)
        let names = try heaviestNames(of: outline, lookup)
        writer.append(names: names?.text ?? [], isPlain: names?.isPlain ?? true, to: &row)
        if report.cause == nil {
            Self.appendOutcome(withoutCause: report, to: &row)
        } else {
            writer.append(ReportCSV.outcome(report), to: &row)
        }
        row += process.machine
    }

    /// The cells of `ReportCSV.stall`.
    private static func appendStall(_ report: StallReport, to row: inout [UInt8]) {
        row.append(report.id)
        row.append(comma)
        if !row.append(rfc3339: report.start) { row += report.start.rfc3339.utf8 }
        row.append(comma)
        row.append(milliseconds: report.duration)
        row.append(comma)
        row.append(milliseconds: report.cpuTime)
        row.append(comma)
        row += report.state.word.utf8
        row.append(comma)
        row += report.verdict.word.utf8
        row.append(comma)
    }

    /// The cells of `ReportCSV.outcome` of a report without a cause.
    private static func appendOutcome(withoutCause report: StallReport, to row: inout [UInt8]) {
        if let ending = report.ending { row += ending.word.utf8 }
        row += [comma, comma, comma]
        row.append(milliseconds: report.threshold)
        row.append(comma)
        row.append(milliseconds: report.detectionDelay)
        row += [comma, comma, comma]
        if report.delayedTime > .zero {
            row.append(milliseconds: report.duration - report.delayedTime)
        }
        row.append(comma)
    }

    private mutating func process(of outline: ReportOutline, _ writer: CSVWriter) -> Process {
        let loop = outline.loopNumber
        let place = Int(truncatingIfNeeded: loop) & (processes.count - 1)
        if let known = processes[place], known.loop == loop { return known }
        var process = Process(loop: loop)
        writer.append(ReportCSV.process(outline.report), to: &process.cells)
        writer.append(ReportCSV.machine(outline.report), to: &process.machine)
        processes[place] = process
        return process
    }

    private mutating func appendCallout(
        _ report: StallReport, _ writer: CSVWriter, to row: inout [UInt8]
    ) {
        let callout = Callout(mode: report.mode, phase: report.phase, activity: report.activity)
        if let known = callouts.first(where: { $0.callout == callout }) {
            return row += known.cells
        }
        var cells: [UInt8] = []
        writer.append(ReportCSV.callout(report), to: &cells)
        if callouts.count == Self.calloutLimit { callouts.removeFirst() }
        callouts.append((callout, cells))
        row += cells
    }

    private static let calloutLimit = 16

    private mutating func appendGroup(
        _ outline: ReportOutline, _ writer: CSVWriter, to row: inout [UInt8]
    ) {
        let group = Group(number: outline.groupNumber, cause: outline.report.cause?.cause)
        if let cells = groups[group] { return row += cells }
        var cells: [UInt8] = []
        writer.append(ReportCSV.group(outline.group, group.cause), to: &cells)
        groups[group] = cells
        row += cells
    }

    /// The names on the heaviest stack that has any; nil if none has.
    private mutating func heaviestNames(
        of outline: ReportOutline, _ lookup: any OutlineLookup
    ) throws -> StackNames? {
        var known: StackNames?
        let stack = try outline.heaviestStack { number in
            known = stacks[Int(truncatingIfNeeded: number) & (stacks.count - 1)]
            if known?.stack == number { return true }
            known = nil
            _ = try lookup.places(ofStack: number, &places)
            return !places.isEmpty
        }
        guard let stack, known == nil else { return known }
        var names = StackNames(stack: stack)
        for place in places {
            let index = Int(place)
            while nameEnds.count <= index { try addName(Int32(nameEnds.count), lookup) }
            if !names.text.isEmpty { names.text += ReportCSV.separator.utf8 }
            names.text += self.names[(index == 0 ? 0 : nameEnds[index - 1])..<nameEnds[index]]
            names.isPlain = names.isPlain && arePlain[index]
        }
        stacks[Int(truncatingIfNeeded: stack) & (stacks.count - 1)] = names
        return names
    }

    private mutating func addName(_ place: Int32, _ lookup: any OutlineLookup) throws {
        let text = try lookup.frames(ofPlace: place).map(\.qualifiedName)
            .joined(separator: ReportCSV.separator)
        names += text.utf8
        nameEnds.append(names.count)
        arePlain.append(CSVWriter.isPlain(text.utf8))
    }
}

private let comma = UInt8(ascii: ",")

/// One row per function on a stack.
enum FrameCSV {
    static let header = [
        "id", "sample", "offset_ms", "weight_ms", "late", "frame", "function", "build_id", "offset",
        "file", "line", "inlined", "guessed", "image", "app", "version", "loop", "thread",
    ]

    static func rows(_ report: StallReport) -> [[CSVWriter.Field]] {
        report.samples.enumerated().flatMap { number, sample in
            sample.frames.enumerated().map { position, frame in
                [
                    .plain(report.id.description), .plain("\(number)"),
                    .plain("\(sample.offset.milliseconds)"),
                    .plain("\(sample.weight.milliseconds)"), .plain("\(sample.isLate)"),
                    .plain("\(position)"), .text(frame.qualifiedName),
                    .plain(frame.buildID?.description ?? ""),
                    .plain("0x" + String(frame.offset, radix: 16)), .text(frame.file ?? ""),
                    .plain(frame.line.map(String.init) ?? ""), .plain("\(frame.isInlined)"),
                    .plain("\(frame.isGuessed)"), .text(frame.imagePath ?? ""),
                    .text(report.run.app), .text(report.run.version), .text(report.loop),
                    .plain("\(sample.thread.rawValue)"),
                ]
            }
        }
    }
}

extension StallCause {
    /// The name of the thread that held the lock, or the process that held the file lock: `process 4711 'sqlite3'`.
    fileprivate var holderName: String? {
        if let holder { return holder.name ?? "thread \(holder.thread.rawValue)" }
        return evidence.first { $0.name == EvidenceName.heldBy.rawValue }?.value
    }
}

// ``image`function``, so that no spreadsheet takes a symbol that begins with `-` or `@` for a formula.

extension Frame {
    fileprivate var qualifiedName: String {
        "\(imageName ?? "?")`" + (function ?? "0x" + String(offset, radix: 16))
    }
}
