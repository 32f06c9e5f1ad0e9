// The stalls that Seastar's reactor reports, in the logs of ScyllaDB, Redpanda and others, on one line or on several.
//
//     Reactor stalled for 33 ms on shard 0, in scheduling group main. Backtrace: 0x56344d3 0x5633880 0x3cb1f
//     kernel callstack: 0xffffffffffffff80 0xffffffff99ffbc97 0xffffffff998dbc0b
//
//     Reactor stalled for 46 ms on shard 1.
//     Backtrace:
//       0x00000000006a7b12
//       /opt/scylladb/libreloc/libc.so.6+0x0000000000024412
//
// The report is written while the stall lasts, so that it began that long before its line. A longer one is reported
// again each time that its duration has doubled, and each is a report here: nothing in a log joins them.
//
// Addresses are from the load address of their binary, which only the form of several lines names. The innermost ones
// are those of the detector's signal handler: without symbols nothing distinguishes them from the stalled code.
//
// `Rate-limit: suppressed 7 backtraces on shard 3` is no fault and no stall: it has neither a duration nor a stack, and
// is passed over as any other line of a log.
//
// Stalls of the kernel in the same log are read, too.
//
// **Source:** scylladb/seastar, src/core/reactor.cc, `cpu_stall_detector::generate_trace`, `print_with_backtrace`.

internal import StallModel
internal import StallQuery

/// Reads the reports of Seastar's stall detector.
struct SeastarStalls: FormatReader {
    private var stalls: LogStalls
    var lines: TextLines { stalls.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) {
        stalls = LogStalls(lines, options, isSeastar: true)
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isHeader(Array($0.utf8).asLogLine[...]) }
    }

    /// Whether a report begins with the line.
    static func isHeader(_ line: ArraySlice<UInt8>) -> Bool { StallLine(line)?.shard != nil }

    mutating func next() throws(LineFault) -> ForeignReport? { try stalls.next() }
}

/// A stall of Seastar's, as far as its lines are read. The kernel's stack is inside of the program's.
struct SeastarStall: OpenStall {
    private static let (frameLimit, wordLimit) = (1000, 4096)
    /// Lines of other processes between those of a report.
    private static let gapLimit = 256
    /// Perf's marks between the parts of a stack are addresses from here.
    private static let firstMark: UInt64 = 0xffff_ffff_ffff_f001

    private let base: ForeignReport
    private let writer: ArraySlice<UInt8>
    private let host: [UInt8]
    private let isOneLine: Bool
    private var frames: [ForeignFrame]
    private var isInBacktrace: Bool
    private var gap = 0

    /// - Returns: Nil if its duration is out of range.
    init?(_ line: StallLine, _ text: ArraySlice<UInt8>, _ number: Int, _ options: ReadingOptions) {
        guard let duration = line.milliseconds.map({ Duration.milliseconds($0) }) else {
            return nil
        }
        var report = ForeignReport(kind: .hang, line: number)
        let prefix = LogPrefix(line.prefix)
        report.app = prefix.process
        report.pid = prefix.pid
        report.host = prefix.host
        report.format = .seastarStalls
        report.start = prefix.time?.before(duration)
        report.likelyStart = prefix.likelyTime(before: options.modified)?.before(duration)
        if report.start == nil { report.timeText = text.trimmed.text }
        report.duration = duration
        // The log may end within the stack.
        if prefix.time != nil || prefix.timeOfYear != nil, !prefix.host.isEmpty || prefix.pid != nil
        {
            let message = text[line.prefix.endIndex...].trimmed.text
            let name = "\(prefix.host) \(prefix.process) \(prefix.pid ?? 0)"
            report.identifier = report.timeText ?? "\(name) \(message)"
        }
        report.threads = [
            ForeignThread(number: line.shard ?? 0, name: line.shard.map { "shard \($0)" })
        ]
        (base, writer, host) = (report, prefix.writer, Array(prefix.host.utf8))
        frames = line.backtrace.compactMap(Self.frame)
        isInBacktrace = line.hasBacktrace && frames.isEmpty
        isOneLine = line.hasBacktrace && !frames.isEmpty
    }

    var report: ForeignReport {
        var report = base
        guard !frames.isEmpty else { return report }
        var sample = ForeignSample(frames: Array(frames.prefix(Self.frameLimit)))
        sample.isTruncated = frames.count > Self.frameLimit
        report.threads[0].samples = [sample]
        return report
    }

    func isWriter(of line: LogLine) -> Bool { message(of: line) != nil }

    mutating func take(_ line: LogLine, isOfOther: Bool) -> Bool {
        guard let message = message(of: line) else {
            gap += 1
            return gap < Self.gapLimit
        }
        if message.begins(with: "kernel callstack:") {
            frames = kernelFrames(message) + frames
            return false
        }
        if !isOneLine, !isInBacktrace, message.elementsEqual("Backtrace:".utf8) {
            isInBacktrace = true
            return true
        }
        guard isInBacktrace, let frame = Self.frame(message) else { return false }
        if frames.count <= Self.frameLimit { frames.append(frame) }
        return true
    }

    /// The line without its prefix; nil if another process wrote it.
    private func message(of line: LogLine) -> ArraySlice<UInt8>? {
        let text = line.text
        if writer.isEmpty { return (text.afterCollector ?? text).trimmed }
        // Processes in containers have the same number on each host.
        var isOfHost = host.isEmpty
        for word in line.words {
            if word.elementsEqual(writer) { return isOfHost ? text[word.endIndex...].trimmed : nil }
            isOfHost = isOfHost || word.elementsEqual(host)
        }
        return nil
    }

    private func kernelFrames(_ message: ArraySlice<UInt8>) -> [ForeignFrame] {
        var rest = message.dropFirst("kernel callstack:".utf8.count)
        var frames: [ForeignFrame] = []
        while frames.count < Self.frameLimit, let address = rest.takeWord().address() {
            guard address < Self.firstMark else { continue }
            frames.append(
                ForeignFrame(
                    image: "[kernel]", offset: address,
                    kind: frames.isEmpty ? .interrupted : .returnAddress))
        }
        return frames
    }

    /// `0x4512c72`, or `/lib/libc.so.6+0x24412`.
    private static func frame(_ word: ArraySlice<UInt8>) -> ForeignFrame? {
        if let address = word.address() { return ForeignFrame(offset: address) }
        guard word.count <= Self.wordLimit, !word.contains(where: \.isBlank),
            let plus = word.lastIndex(of: UInt8(ascii: "+")), plus > word.startIndex,
            let offset = word[(plus + 1)...].address()
        else { return nil }
        return ForeignFrame(image: word[..<plus].text, offset: offset)
    }
}
