// The stalls of a log, in its order. Lines of several hosts, processors and programs stand among each other there, so
// that several stalls are open at once, and each takes the lines that are its own.
//
// The kernel repeats a hang that lasts: a closed stall is held until its repetition would be late, so that both are
// one. All numbers of stalls are bounded: a log may have gigabytes.

internal import StallModel
internal import StallQuery

/// A line of a log. Its kernel message is found only where it is asked for: most lines belong to no stall.
final class LogLine {
    let text: ArraySlice<UInt8>
    lazy var kernel = KernelLine(text)
    /// The first words, among which the process is named: no prefix has more.
    lazy var words = text.prefix(1024).words(atMost: 32)

    init(_ text: ArraySlice<UInt8>) { self.text = text }
}

/// A stall whose lines are not all read.
protocol OpenStall {
    /// The report of the lines up to here.
    var report: ForeignReport { get }

    /// Whether the line is by the host, and the processor or task or process, that reports the stall.
    func isWriter(of line: LogLine) -> Bool

    /// - Parameter isOfOther: Another open stall has this line's writer.
    /// - Returns: Whether there can be more of it.
    mutating func take(_ line: LogLine, isOfOther: Bool) -> Bool
}

/// Reads the stalls of the kernel and of Seastar.
struct LogStalls {
    private static let (openLimit, heldLimit, countLimit) = (8, 1024, 1 << 14)

    private(set) var lines: TextLines
    private let options: ReadingOptions
    /// The text is a log of Seastar: its reports may lack the shard.
    private let isSeastar: Bool
    private var stalls: [LogStall] = []
    /// Those of the stalls whose lines are not all read, in their order.
    private var open: [LogStall] = []
    private var last: LogLine?
    private var hasEnded = false
    /// How many reports of each content there were.
    private var counts: [Int: UInt64] = [:]

    init(_ lines: TextLines, _ options: ReadingOptions, isSeastar: Bool) {
        (self.lines, self.options, self.isSeastar) = (lines, options, isSeastar)
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while true {
            if let first = takeFirst() { return try first.get() }
            if hasEnded { return nil }
            guard let bytes = lines.next() else {
                end()
                continue
            }
            take(bytes.asLogLine[...])
        }
    }

    private mutating func take(_ text: ArraySlice<UInt8>) {
        let line = LogLine(text)
        if let first = StallLine(text), isSeastar || first.shard != nil {
            guard let stall = SeastarStall(first, text, lines.number, options) else {
                return fail("has a duration out of range")
            }
            pass(line)
            closeAll { $0 is SeastarStall && $0.isWriter(of: line) }
            begin(stall, hang: nil)
            return
        }
        let mayBegin = KernelStalls.mayBegin(text)
        // With no open stall it is enough to look at the time now and then.
        guard
            mayBegin || !open.isEmpty || !stalls.isEmpty && lines.number.isMultiple(of: 64)
        else { return }
        last = line
        guard mayBegin, let header = KernelStallHeader(line.kernel.message) else {
            pass(line)
            return
        }
        guard header.isInRange else {
            return fail("has a number out of range")
        }
        pass(line) { $0 is SeastarStall }
        closeAll { $0 is KernelStall && $0.isWriter(of: line) }
        begin(
            KernelStall(header, line, lines.number, options),
            hang: KernelHang(header, line.kernel))
    }

    /// Gives a line to the open stalls.
    private mutating func pass(
        _ line: LogLine, to isWanted: (any OpenStall) -> Bool = { _ in true }
    ) {
        let writers = open.count > 1 ? open.map { $0.open?.isWriter(of: line) ?? false } : [false]
        for (place, stall) in open.enumerated() where stall.open.map(isWanted) ?? false {
            let isOfOther = !writers[place] && writers.contains(true)
            if stall.open?.take(line, isOfOther: isOfOther) == false { stall.close() }
        }
        open.removeAll { $0.open == nil }
    }

    private mutating func begin(_ new: any OpenStall, hang: KernelHang?) {
        if open.count >= Self.openLimit { open.removeFirst().close() }
        let stall: LogStall
        if let hang, let same = stalls.last(where: { $0.hang?.goesOn(in: hang) ?? false }) {
            same.close()
            open.removeAll { $0 === same }
            (same.open, same.hang) = (new, hang)
            stall = same
        } else {
            stall = LogStall(open: new, hang: hang)
            stalls.append(stall)
        }
        open.append(stall)
    }

    private mutating func closeAll(_ isOfThem: (any OpenStall) -> Bool) {
        for stall in open where stall.open.map(isOfThem) ?? false { stall.close() }
        open.removeAll { $0.open == nil }
    }

    private mutating func fail(_ reason: String) {
        stalls.append(LogStall(fault: LineFault(line: lines.number, reason: reason)))
    }

    /// A stall whose lines may continue behind those that could be read is not whole.
    private mutating func end() {
        hasEnded = true
        if lines.errno != 0 { stalls.removeAll { $0.open != nil } }
        closeAll { _ in true }
        for stall in stalls { stall.report?.isWhole = true }
    }

    /// The first stall, if nothing more comes of it.
    private mutating func takeFirst() -> Result<ForeignReport, LineFault>? {
        guard let first = stalls.first else { return nil }
        if !hasEnded, stalls.count <= Self.heldLimit {
            if first.open != nil { return nil }
            if let hang = first.hang, let last, !hang.isOver(at: last.kernel) { return nil }
        }
        first.close()
        open.removeAll { $0 === first }
        stalls.removeFirst()
        if let fault = first.fault { return .failure(fault) }
        guard var report = first.report else { return nil }
        report.occurrence = occurrence(of: report)
        return .success(report)
    }

    /// The number of earlier reports of the same content: those of one second in a log without its fractions are
    /// several. The kernel's differ in their time, but where a log has none.
    private mutating func occurrence(of report: ForeignReport) -> UInt64 {
        guard report.format == .seastarStalls || report.hasNoClock else { return 0 }
        var content = report
        (content.line, content.isWhole) = (0, false)
        if content.identifier != nil { content.threads = [] }
        let count = counts[content.hashValue, default: 0]
        if counts.count >= Self.countLimit {
            counts = counts.filter { $0.value > 1 }
            if counts.count >= Self.countLimit / 2 { counts = [:] }
        }
        counts[content.hashValue] = count + 1
        return count
    }
}

/// A stall that is not delivered yet.
private final class LogStall {
    /// Nil if all its lines are read.
    var open: (any OpenStall)?
    /// Of the lines before those of the open one, where the kernel repeats it.
    var report: ForeignReport?
    var hang: KernelHang?

    /// There is none, but a line that cannot be read.
    var fault: LineFault?

    init(open: any OpenStall, hang: KernelHang?) { (self.open, self.hang) = (open, hang) }
    init(fault: LineFault) { self.fault = fault }

    func close() {
        guard let new = open?.report else { return }
        open = nil
        // It is the one of the first line, also in a log that ends there.
        guard var first = report else {
            report = new
            return
        }
        first.duration = [first.duration, new.duration].compactMap(\.self).max()
        let (stack, later) = (first.threads.first?.samples.first, new.threads.first?.samples.first)
        if let later, !later.isTruncated || stack?.isTruncated != false {
            first.threads = new.threads
        }
        report = first
    }
}
