// The stalls of a log, in its order. Lines of several hosts, processors and programs stand among each other there, so
// that several stalls are open at once, and each takes the lines that are its own.
//
// The kernel repeats a hang that lasts: a closed stall is held until its repetition would be late, so that both are
// one. All numbers of stalls are bounded: a log may have gigabytes.

internal import StallModel
internal import StallQuery

/// A stall whose lines are not all read.
protocol OpenStall {
    /// The report of the lines up to here.
    var report: ForeignReport { get }

    /// Whether the line is by the host, and the processor or task or process, that reports the stall.
    func isWriter(of line: KernelLine) -> Bool

    /// - Parameter isOfOther: Another open stall has this line's writer.
    /// - Returns: Whether there can be more of it.
    mutating func take(_ line: KernelLine, isOfOther: Bool) -> Bool
}

/// Reads the stalls of the kernel and of Seastar.
struct LogStalls {
    private static let (openLimit, heldLimit, countLimit) = (8, 256, 1 << 14)

    private(set) var lines: TextLines
    private let options: ReadingOptions
    /// The text is a log of Seastar: its reports may lack the shard.
    private let isSeastar: Bool
    private var stalls: [LogStall] = []
    private var last: KernelLine?
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
        if let first = StallLine(text), isSeastar || first.shard != nil {
            guard let stall = SeastarStall(first, text, lines.number, options) else {
                return fail("has a duration out of range")
            }
            let line = KernelLine(text)
            pass(line)
            closeStalls { $0 is SeastarStall && $0.isWriter(of: line) }
            open(stall, hang: nil)
            return
        }
        let mayBegin = KernelStalls.mayBegin(text)
        // With no open stall it is enough to look at the time now and then.
        guard
            mayBegin || stalls.contains(where: { $0.open != nil })
                || !stalls.isEmpty && lines.number.isMultiple(of: 64)
        else { return }
        let line = KernelLine(text)
        last = line
        guard mayBegin, let header = KernelStallHeader(line.message) else {
            pass(line)
            return
        }
        guard header.isInRange else {
            return fail("has a number out of range")
        }
        for place in stalls.indices where stalls[place].open is SeastarStall {
            pass(line, to: place)
        }
        closeStalls { $0 is KernelStall && $0.isWriter(of: line) }
        open(KernelStall(header, line, lines.number, options), hang: KernelHang(header, line))
    }

    /// Gives a line to the open stalls.
    private mutating func pass(_ line: KernelLine) {
        for place in stalls.indices { pass(line, to: place) }
    }

    private mutating func pass(_ line: KernelLine, to place: Int) {
        guard let isWriter = stalls[place].open?.isWriter(of: line) else { return }
        let isOfOther =
            !isWriter && stalls.contains { $0.open?.isWriter(of: line) ?? false }
        if stalls[place].open?.take(line, isOfOther: isOfOther) == false { stalls[place].close() }
    }

    private mutating func open(_ stall: any OpenStall, hang: KernelHang?) {
        let open = stalls.indices.filter { stalls[$0].open != nil }
        if open.count >= Self.openLimit { stalls[open[0]].close() }
        if let hang, let place = stalls.firstIndex(where: { $0.hang?.goesOn(in: hang) ?? false }) {
            stalls[place].close()
            (stalls[place].open, stalls[place].hang) = (stall, hang)
        } else {
            stalls.append(LogStall(open: stall, hang: hang))
        }
    }

    private mutating func closeStalls(_ isOfThem: (any OpenStall) -> Bool) {
        for place in stalls.indices {
            if let open = stalls[place].open, isOfThem(open) { stalls[place].close() }
        }
    }

    private mutating func fail(_ reason: String) {
        stalls.append(LogStall(fault: LineFault(line: lines.number, reason: reason)))
    }

    /// A stall whose lines may continue behind those that could be read is not whole.
    private mutating func end() {
        hasEnded = true
        if lines.errno != 0 { stalls.removeAll { $0.open != nil } }
        closeStalls { _ in true }
        for place in stalls.indices { stalls[place].report?.isWhole = true }
    }

    /// The first stall, if nothing more comes of it.
    private mutating func takeFirst() -> Result<ForeignReport, LineFault>? {
        guard let first = stalls.first else { return nil }
        if !hasEnded, stalls.count <= Self.heldLimit {
            if first.open != nil { return nil }
            if let hang = first.hang, let last, !hang.isOver(at: last) { return nil }
        }
        stalls[0].close()
        let stall = stalls.removeFirst()
        if let fault = stall.fault { return .failure(fault) }
        guard var report = stall.report else { return nil }
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
private struct LogStall {
    /// Nil if all its lines are read.
    var open: (any OpenStall)?
    /// Of the lines before those of the open one, where the kernel repeats it.
    var report: ForeignReport?
    var hang: KernelHang?

    /// There is none, but a line that cannot be read.
    var fault: LineFault?

    init(open: any OpenStall, hang: KernelHang?) { (self.open, self.hang) = (open, hang) }
    init(fault: LineFault) { self.fault = fault }

    mutating func close() {
        guard let new = open?.report else { return }
        open = nil
        guard report != nil else {
            report = new
            return
        }
        // It is the one of the first line, also in a log that ends there.
        report?.duration = new.duration
        if new.threads.contains(where: { !$0.samples.isEmpty }) { report?.threads = new.threads }
    }
}
