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
    private static let (frameLimit, wordLimit) = (1000, 4096)
    /// Lines of other processes between those of a report.
    private static let gapLimit = 256
    /// Perf's marks between the parts of a stack are addresses from here.
    private static let firstMark: UInt64 = 0xffff_ffff_ffff_f001

    private(set) var lines: TextLines

    private let options: ReadingOptions

    init(_ lines: TextLines, _ options: ReadingOptions) {
        self.lines = lines
        self.options = options
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isHeader(Array($0.utf8).asLogLine[...]) }
    }

    /// Whether a report begins with the line.
    static func isHeader(_ line: ArraySlice<UInt8>) -> Bool { StallLine(line)?.shard != nil }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let bytes = lines.next() {
            let text = bytes.asLogLine
            guard let line = StallLine(text[...]) else {
                guard KernelStalls.isHeader(text[...]) else { continue }
                lines.putBack()
                var other = KernelStalls(lines, options)
                defer { lines = other.lines }
                return try other.next()
            }
            guard let milliseconds = line.milliseconds else {
                throw LineFault(line: lines.number, reason: "has a duration out of range")
            }
            var report = report(line, .milliseconds(milliseconds))
            if report.start == nil { report.timeText = text[...].trimmed.text }
            return report
        }
        return nil
    }

    private mutating func report(_ line: StallLine, _ duration: Duration) -> ForeignReport {
        var report = ForeignReport(kind: .hang, line: lines.number)
        let prefix = LogPrefix(line.prefix)
        report.app = prefix.process
        report.pid = prefix.pid
        report.host = prefix.host
        report.format = .seastarStalls
        report.start = prefix.time?.before(duration)
        report.likelyStart = prefix.likelyTime(before: options.modified)?.before(duration)
        report.duration = duration
        let sample = stack(of: line, by: prefix.writer)
        let number = line.shard ?? 0
        var thread = ForeignThread(number: number, name: line.shard.map { "shard \($0)" })
        if !sample.frames.isEmpty { thread.samples = [sample] }
        report.threads = [thread]
        return report
    }

    /// The kernel's stack is inside of the program's.
    private mutating func stack(
        of first: StallLine, by writer: ArraySlice<UInt8>
    ) -> ForeignSample {
        var frames = first.backtrace.compactMap(Self.frame)
        var (isInBacktrace, gap) = (first.hasBacktrace && frames.isEmpty, 0)
        let isOneLine = first.hasBacktrace && !frames.isEmpty
        while let bytes = lines.next() {
            let line = bytes.asLogLine[...]
            guard let message = Self.message(line, of: writer) else {
                gap += 1
                let isOther = StallLine(line) != nil || KernelStalls.isHeader(line)
                if gap < Self.gapLimit, !isOther { continue }
                lines.putBack()
                break
            }
            if message.begins(with: "kernel callstack:") {
                frames = kernelFrames(message) + frames
                break
            } else if !isOneLine, !isInBacktrace, message.elementsEqual("Backtrace:".utf8) {
                isInBacktrace = true
            } else if isInBacktrace, let frame = Self.frame(message) {
                if frames.count <= Self.frameLimit { frames.append(frame) }
            } else {
                lines.putBack()
                break
            }
        }
        var sample = ForeignSample(frames: Array(frames.prefix(Self.frameLimit)))
        sample.isTruncated = frames.count > Self.frameLimit
        return sample
    }

    /// The line without its prefix; nil if another process wrote it.
    private static func message(
        _ line: ArraySlice<UInt8>, of writer: ArraySlice<UInt8>
    ) -> ArraySlice<UInt8>? {
        if writer.isEmpty { return (line.afterCollector ?? line).trimmed }
        var rest = line.prefix(1024)
        while true {
            let word = rest.takeWord()
            if word.isEmpty { return nil }
            if word.elementsEqual(writer) { return line[word.endIndex...].trimmed }
        }
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

/// The first line of a report.
private struct StallLine {
    let prefix: ArraySlice<UInt8>
    /// Nil if out of range.
    let milliseconds: Int32?
    private(set) var shard: Int32?
    private(set) var hasBacktrace = false
    /// Addresses; none where they are on lines of their own.
    private(set) var backtrace: [ArraySlice<UInt8>] = []

    init?(_ line: ArraySlice<UInt8>) {
        guard let found = line.range(of: "Reactor stalled for ") else { return nil }
        let digits = line[found.upperBound...].prefix(while: \.isDigit)
        var rest = line[digits.endIndex...]
        guard !digits.isEmpty, rest.begins(with: " ms"), let end = rest.dropFirst(3).first,
            end == UInt8(ascii: " ") || end == UInt8(ascii: ".")
        else { return nil }
        prefix = line[..<found.lowerBound]
        milliseconds = digits.decimal(Int32.self)
        rest = rest.dropFirst(3)
        if rest.begins(with: " on shard ") {
            shard = rest.dropFirst(10).prefix(while: \.isDigit).decimal(Int32.self)
        }
        guard let stack = rest.range(of: ". Backtrace:") else { return }
        hasBacktrace = true
        rest = rest[stack.upperBound...]
        while backtrace.count <= 1000 {
            let word = rest.takeWord()
            if word.isEmpty { break }
            backtrace.append(word)
        }
    }
}
