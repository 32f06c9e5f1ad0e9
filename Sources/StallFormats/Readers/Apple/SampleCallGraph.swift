// The output of macOS' `sample`: the call tree of each thread of a process that was sampled for some seconds.
//
// **Source:** sample(1); brendangregg/FlameGraph, stackcollapse-sample.awk.

internal import StallModel
internal import StallQuery

/// Reads the output of `sample`.
struct SampleCallGraph: FormatReader {
    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { $0.hasPrefix(first) || $0.hasPrefix("Call graph:") }
            && beginning.lines.contains { thread($0) != nil }
    }

    private static let first = "Analysis of sampling "

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let line = lines.nextText() {
            if line.hasPrefix(Self.first) || line.hasPrefix("Call graph:") {
                lines.putBack()
                return try report()
            }
        }
        return nil
    }

    private mutating func report() throws(LineFault) -> ForeignReport {
        var block = SampleBlock()
        let first = lines.number
        var isFirst = true
        while let line = lines.nextText() {
            if !isFirst, line.hasPrefix(Self.first) {
                lines.putBack()
                break
            }
            isFirst = false
            block.take(line)
        }
        guard !block.isTooLarge else {
            throw LineFault(
                line: first, reason: "the report has more than \(SampledTree.nodeLimit) calls")
        }
        let report = block.report(line: first)
        guard !report.threads.isEmpty else {
            throw LineFault(line: first, reason: "the report has no call graph")
        }
        return report
    }

    /// `    825 Thread_15758523   DispatchQueue_1: com.apple.main-thread  (serial)`, or with a name behind a colon.
    fileprivate static func thread(_ line: Substring) -> (
        number: Int32?, name: String?, queue: String?
    )? {
        guard let call = CallGraphLine(line, prefix: " "), call.text.hasPrefix("Thread_") else {
            return nil
        }
        var text = call.text.dropFirst("Thread_".count)
        let digits = text.prefix(while: \.isHexDigit)
        text = text.dropFirst(digits.count)
        var queue: String?
        if let marker = text.firstRange(of: "DispatchQueue_") {
            let label = text[marker.upperBound...]
            if let colon = label.firstRange(of: ": ") {
                queue =
                    label[colon.upperBound...].firstRange(of: "  ").map {
                        label[colon.upperBound..<$0.lowerBound].trimmed
                    } ?? label[colon.upperBound...].trimmed
            }
            text = text[..<marker.lowerBound]
        }
        let name = text.hasPrefix(":") ? text.dropFirst().trimmed : ""
        return (Int32(digits), name.isEmpty ? nil : name, queue)
    }
}

/// The lines of one report.
private struct SampleBlock {
    private var header: [String: String] = [:]
    private var threads: [CallGraphThread] = []
    private var images: [Image] = []
    private var section = Section.header
    private var nodeCount = 0
    private var interval: Duration?
    var isTooLarge: Bool { nodeCount > SampledTree.nodeLimit }

    private enum Section { case header, calls, other, images }

    mutating func take(_ line: String) {
        if line.hasPrefix("Call graph:") {
            section = .calls
        } else if line.hasPrefix("Total number in stack") || line.hasPrefix("Sort by top of stack")
        {
            section = .other
        } else if line.hasPrefix("Binary Images:") {
            section = .images
        } else {
            switch section {
            case .header: takeHeader(line)
            case .calls: takeCall(line)
            case .images: if let image = AppleImageLine.image(line) { images.append(image) }
            case .other: break
            }
        }
    }

    /// `Analysis of sampling Reader (pid 812) every 1 millisecond`, then keys and values.
    private mutating func takeHeader(_ line: String) {
        if line.hasPrefix("Analysis of sampling "), let every = line.ranges(of: " every ").last {
            interval = DurationText.duration(String(line[every.upperBound...]))
            let process = line[..<every.lowerBound].dropFirst("Analysis of sampling ".count)
            if let pid = process.ranges(of: " (pid ").last {
                header["Process"] =
                    "\(process[..<pid.lowerBound]) [\(process[pid.upperBound...].dropLast())]"
            }
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let key = line[..<colon].trimmed
        if header[key] == nil { header[key] = line[line.index(after: colon)...].trimmed }
    }

    private mutating func takeCall(_ line: String) {
        guard !isTooLarge else { return }
        if let (number, name, queue) = SampleCallGraph.thread(line[...]) {
            threads.append(
                CallGraphThread(
                    number: number ?? Int32(clamping: threads.count), name: name, queue: queue))
        } else if let call = CallGraphLine(line[...], prefix: " +!:|"), !threads.isEmpty {
            threads[threads.count - 1].calls.add(
                SampledFrame(sample: call.text), column: call.column, count: call.count)
        } else {
            return
        }
        nodeCount += 1
    }

    func report(line: Int) -> ForeignReport {
        var report = ForeignReport(kind: .samples, line: line)
        let (process, pid) = AppleHeader.process(header["Process"] ?? "")
        (report.app, report.pid) = (process, pid)
        report.version = AppleHeader.version(header["Version"], isSwapped: false)
        report.start = header["Date/Time"].flatMap(AppleHeader.time)
        report.takeMachine(
            os: header["OS Version"], device: header["Hardware model"] ?? header["Hardware Model"])
        report.take(threads, images)
        report.buildID = images.first { $0.path == header["Path"] || $0.name == process }?.buildID
        // A thread that lived all the time has all samples.
        if let interval, let count = threads.map(\.calls.tree.count).max() {
            report.duration = DurationText.duration(
                seconds: Double(count) * Double(interval.nanoseconds) / 1e9)
        }
        return report
    }
}
