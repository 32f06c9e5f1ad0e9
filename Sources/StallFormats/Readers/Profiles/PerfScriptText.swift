// The text of `perf script`, and swift-profile-recorder's, which is nearly the same.
//
// Each thread's samples without a long gap are a report. Of several kinds of events one is taken: the samples of two events
// would count the same time twice.

internal import StallModel
internal import StallQuery

/// Reads samples and gives a run of them as soon as it has ended.
struct PerfScriptText: FormatReader {
    static var lineLimit: Int { 1 << 16 }
    /// Deeper stacks are cut off there: more than a report takes.
    private static let stackLimit = 1024
    /// The most events that faults name.
    private static let eventLimit = 64
    /// Bounds of the distinct lines that are kept.
    private static let (textLimit, byteLimit) = (1 << 17, 1 << 25)

    private(set) var lines: TextLines
    private var runs = SampleRuns()
    private var frames = TextNumbers()
    private var parsed: [Int32: ForeignFrame] = [:]
    /// The event whose samples are taken: the wanted one, or the first.
    private var event: [UInt8]?
    /// Other events that were left out.
    private var others: [[UInt8]] = []
    private let isEventWanted: Bool
    /// Whether there were any samples, and any of the event.
    private var (hasSamples, hasEvent) = (false, false)
    private var host = ""
    /// The commands of main threads.
    private var apps: [Int32: [UInt8]] = [:]
    private var stack: [Int32] = []

    init(_ lines: TextLines, _ options: ReadingOptions) {
        self.lines = lines
        event = options.event.map { Array($0.utf8) }
        isEventWanted = options.event != nil
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        var hasEvent = false
        for line in beginning.lines {
            let bytes = ArraySlice(line.utf8)
            if hasEvent, bytes.first?.isBlank == true, isFrame(bytes) { return true }
            guard let event = PerfEventLine(bytes),
                event.thread.pid != nil || event.thread.time != nil
            else {
                hasEvent = false
                continue
            }
            if event.thread.time != nil, isFrame(event.rest) { return true }
            hasEvent = !event.event.isEmpty
        }
        return false
    }

    /// Whether it begins with an address: more than a word that has only the letters of one.
    private static func isFrame(_ line: ArraySlice<UInt8>) -> Bool {
        var rest = line
        let word = rest.takeWord()
        return word.hexadecimal() != nil && (rest.trimmed.isEmpty || rest.trimmed.last == 0x29)
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while true {
            if let run = runs.takeEnded() { return report(run) }
            if frames.count > Self.textLimit || frames.byteCount > Self.byteLimit {
                frames.removeAll()
                parsed.removeAll()
            }
            guard try readEvent() else {
                runs.endAll()
                guard let run = runs.takeEnded() else {
                    guard hasSamples, !hasEvent, let event else { return nil }
                    hasSamples = false
                    throw LineFault(
                        line: lines.number, reason: "no samples are of the event \(event[...].text)"
                    )
                }
                return report(run)
            }
        }
    }

    // MARK: Events

    /// False at the end.
    private mutating func readEvent() throws(LineFault) -> Bool {
        guard let line = lines.next()?[...] else { return false }
        guard let first = line.first, first != UInt8(ascii: "#") else {
            takeHeader(line)
            return true
        }
        let number = lines.number
        guard let event = PerfEventLine(line) else {
            try skipStack(behind: number)
            return true
        }
        stack.removeAll(keepingCapacity: true)
        var isTruncated = false
        if event.thread.time != nil, Self.isFrame(event.rest) {
            stack.append(Int32(frames.number(of: event.rest)))
        } else {
            isTruncated = readStack()
        }
        guard !stack.isEmpty, !event.event.begins(with: "PERF_RECORD_") else { return true }
        guard try isTaken(event.event, line: number) else { return true }
        if let pid = event.thread.pid, pid == event.thread.tid,
            apps.count < 4096 || apps[pid] != nil
        {
            if apps[pid]?.elementsEqual(event.thread.command) != true {
                apps[pid] = Array(event.thread.command)
            }
        }
        runs.add(stack, of: event.thread, line: number, isTruncated: isTruncated)
        // The numbers of frames are of use until all runs have ended.
        if frames.count > Self.textLimit || frames.byteCount > Self.byteLimit { runs.endAll() }
        return true
    }

    /// - Throws: For the first sample of each event that is left out, if no event was asked for.
    private mutating func isTaken(
        _ found: ArraySlice<UInt8>, line: Int
    ) throws(LineFault) -> Bool {
        let event = event ?? Array(found)
        self.event = event
        hasSamples = true
        if event.elementsEqual(found)
            || (isEventWanted && event.elementsEqual(found.withoutModifiers))
        {
            hasEvent = true
            return true
        }
        if isEventWanted || others.count >= Self.eventLimit
            || others.contains(where: { $0.elementsEqual(found) })
        {
            return false
        }
        others.append(Array(found))
        throw LineFault(
            line: line,
            reason: "samples of the event \(found.text) are left out beside those of "
                + "\(event[...].text): --event \(found.text) takes them instead")
    }

    /// - Returns: Whether frames are missing.
    private mutating func readStack() -> Bool {
        var isTruncated = false
        while let line = lines.next() {
            guard let first = line.first else { break }
            guard first.isBlank else {
                lines.putBack()
                break
            }
            guard stack.count < Self.stackLimit else {
                isTruncated = true
                continue
            }
            if Self.isPlace(line), let last = stack.last {
                let both = frames[Int(last)] + [0x0a] + line
                stack[stack.count - 1] = Int32(frames.number(of: both[...]))
            } else {
                stack.append(Int32(frames.number(of: line[...])))
            }
        }
        return isTruncated
    }

    /// A line with the source location of the frame before has no address.
    private static func isPlace(_ line: [UInt8]) -> Bool {
        for byte in line.drop(while: \.isBlank) {
            if byte.isBlank { return false }
            if byte.hexadecimalDigit == nil { return line.last != UInt8(ascii: ")") }
        }
        return false
    }

    /// A stack whose event cannot be read is a fault; any other text is noise.
    private mutating func skipStack(behind number: Int) throws(LineFault) {
        guard let line = lines.next() else { return }
        guard line.first?.isBlank == true, Self.isFrame(line[...]) else {
            lines.putBack()
            return
        }
        while let line = lines.next(), line.first?.isBlank == true {}
        if !lines.line.isEmpty { lines.putBack() }
        throw LineFault(line: number, reason: "a stack follows a line that is no event")
    }

    private mutating func takeHeader(_ line: ArraySlice<UInt8>) {
        var rest = line.dropFirst()
        guard rest.takeWord().elementsEqual("hostname".utf8),
            rest.takeWord().elementsEqual(":".utf8)
        else { return }
        host = rest.trimmed.text
    }

    // MARK: Reports

    private mutating func report(_ run: SampleRun) -> ForeignReport {
        let app = run.pid.map { apps[$0] } ?? run.name
        var report = run.report(app: app) { stack($0) }
        report.host = host
        // swift-profile-recorder's times are the wall clock's.
        if event?.elementsEqual("swipr".utf8) == true, let first = run.first {
            report.start = UnixTime(microseconds: first / 1000)
        }
        return report
    }

    private mutating func stack(_ numbers: ArraySlice<Int32>) -> [ForeignFrame] {
        var stack: [ForeignFrame] = []
        stack.reserveCapacity(numbers.count)
        for number in numbers {
            if parsed[number] == nil {
                parsed[number] = ForeignFrame(perfLine: frames[Int(number)]) ?? ForeignFrame()
            }
            if let frame = parsed[number] { stack.append(frame) }
        }
        stack.completeInlined()
        return stack
    }
}

extension [ForeignFrame] {
    /// Gives inlined functions the binary and the kind of address of the one that they are in; the innermost was
    /// interrupted.
    mutating func completeInlined() {
        for place in indices.reversed() where self[place].isInlined && place + 1 < count {
            self[place].image = self[place].image ?? self[place + 1].image
        }
        for place in indices {
            if self[place].kind != .asyncResume { self[place].kind = .interrupted }
            if !self[place].isInlined { break }
        }
    }
}

extension ArraySlice<UInt8> {
    /// An event without what perf's `-e` appends to its name: `cycles:u`, `cpu-clock:ukppp`.
    fileprivate var withoutModifiers: Self {
        guard let colon = lastIndex(of: UInt8(ascii: ":")) else { return self }
        let isModifiers = self[(colon + 1)...].allSatisfy("ukhGHpPSDeIW".utf8.contains)
        return isModifiers ? self[..<colon] : self
    }
}
