// One report of spindump: its header, and the threads of the process that it is about. It has those of all others, too.

internal import StallModel

/// Takes the lines of a report one by one.
struct SpindumpBlock {
    let line: Int
    private var header: [String: String] = [:]
    private var section = Section.header
    /// The process is the one that the report is about.
    private var isTarget = false
    private var process: [String: String] = [:]
    private var threads: [CallGraphThread] = []
    private var images: [Image] = []
    private var heaviest = SampledTreeCursor()
    private var heaviestIsMain = false
    private var nodeCount = 0

    private enum Section { case header, heaviest, process, thread, images }

    init(line: Int) { self.line = line }

    /// Processes, or a stack.
    var hasBody: Bool { section != .header }
    var hasEvent: Bool { header["Event"] != nil }
    var isTooLarge: Bool { nodeCount > SampledTree.nodeLimit }

    mutating func take(_ line: String) {
        if let name = Self.process(line) {
            begin(name)
        } else if line.hasPrefix("Heaviest stack for") {
            section = .heaviest
            heaviestIsMain = line.contains("main thread")
        } else if section == .header {
            Self.take(line, in: &header)
        } else if section == .heaviest {
            takeHeaviest(line)
        } else if isTarget, !isTooLarge {
            takeOfProcess(line)
        }
    }

    /// `Process:  Reader [812]`, or `Powerstats for:  Reader [812]`, whose number may be missing.
    private static func process(_ line: String) -> String? {
        for key in ["Process:", "Powerstats for:"] where line.hasPrefix(key) {
            return line.dropFirst(key.count).trimmed
        }
        return nil
    }

    private static func take(_ line: String, in values: inout [String: String]) {
        guard let colon = line.firstIndex(of: ":") else { return }
        let key = line[..<colon].trimmed
        if values[key] == nil { values[key] = line[line.index(after: colon)...].trimmed }
    }

    private mutating func begin(_ process: String) {
        let (name, pid) = AppleHeader.process(process)
        section = .process
        if let wanted = header["PID"].flatMap({ Int32($0) }), let pid {
            isTarget = pid == wanted
        } else if let command = header["Command"] {
            isTarget = name == command
        } else {
            // Without a word on the process, it is the first.
            isTarget = self.process.isEmpty && threads.isEmpty
        }
        if isTarget { self.process["Process"] = process }
    }

    private mutating func takeHeaviest(_ line: String) {
        guard let call = CallGraphLine(line[...], prefix: " *") else { return }
        nodeCount += 1
        guard !isTooLarge else { return }
        // A list: each call is below the one before.
        heaviest.add(SampledFrame(spindump: call.text), column: nodeCount, count: call.count)
    }

    private mutating func takeOfProcess(_ line: String) {
        let text = line.drop(while: \.isWhitespace)
        if text.hasPrefix("Binary Images:") {
            section = .images
        } else if section == .images {
            // `*` marks the kernel's.
            if let image = AppleImageLine.image(String(text.drop { $0 == "*" })) {
                images.append(image)
            }
        } else if text.hasPrefix("Thread ") {
            threads.append(Self.thread(text, threads.count))
            section = .thread
            nodeCount += 1
        } else if section == .thread {
            guard let call = CallGraphLine(line[...], prefix: " *") else { return }
            threads[threads.count - 1].calls.add(
                SampledFrame(spindump: call.text), column: call.column, count: call.count)
            nodeCount += 1
        } else {
            Self.take(line, in: &process)
        }
    }

    /// `Thread 0x2ca9e    DispatchQueue "com.apple.main-thread"(1)    Thread name "x"    49 samples (1-49)`.
    private static func thread(_ text: Substring, _ count: Int) -> CallGraphThread {
        let number = text.dropFirst("Thread ".count).prefix { !$0.isWhitespace }
        var thread = CallGraphThread(
            number: (number.hasPrefix("0x")
                ? Int32(number.dropFirst(2), radix: 16) : Int32(number))
                ?? Int32(clamping: count))
        thread.queue = quoted(text, behind: "DispatchQueue \"")
        thread.name = quoted(text, behind: "Thread name \"")
        return thread
    }

    private static func quoted(_ text: Substring, behind marker: String) -> String? {
        guard let start = text.firstRange(of: marker)?.upperBound,
            let end = text[start...].firstIndex(of: "\"")
        else { return nil }
        return String(text[start..<end])
    }

    // MARK: The report

    /// Nil without a stack.
    func report() -> ForeignReport? {
        var report = ForeignReport(kind: kind, line: line)
        let (name, pid) = AppleHeader.process(process["Process"] ?? "")
        report.app = name.isEmpty ? header["Command"] ?? "" : name
        report.pid = pid ?? header["PID"].flatMap { Int32($0) }
        report.version = AppleHeader.version(
            header["Version"] ?? process["Version"], isSwapped: false)
        report.start = header["Date/Time"].flatMap(AppleHeader.time)
        report.takeMachine(
            os: header["OS Version"], device: header["Hardware model"] ?? header["Hardware Model"])
        report.duration = header["Duration"].flatMap(DurationText.duration) ?? sampled
        var threads = threads.filter { !$0.calls.tree.isEmpty }
        if threads.isEmpty, !heaviest.tree.isEmpty {
            var thread = CallGraphThread(number: 0, calls: heaviest)
            if heaviestIsMain { thread.queue = "com.apple.main-thread" }
            threads = [thread]
        }
        report.take(threads, images)
        let path = header["Path"] ?? process["Path"]
        report.buildID = images.first { $0.path == path || $0.name == report.app }?.buildID
        if report.kind == .hang { report.stalledThread = report.threads.firstIndex { $0.isMain } }
        return report.threads.isEmpty && !report.isOther ? nil : report
    }

    private var kind: ForeignReport.Kind {
        let event = header["Event"]?.lowercased() ?? ""
        if event.hasPrefix("hang") || event.contains("unresponsive") { return .hang }
        if event.hasPrefix("cpu") { return .other("a report of used CPU time") }
        if event.hasPrefix("disk writes") { return .other("a report of disk writes") }
        if event.hasPrefix("wakeups") { return .other("a report of wake-ups") }
        return .samples
    }

    /// `Steps: 49 (100ms sampling interval)`.
    private var sampled: Duration? {
        guard let steps = header["Steps"], let bracket = steps.firstIndex(of: "("),
            let count = Int64(steps[..<bracket].trimmed),
            let interval = DurationText.duration(String(steps[steps.index(after: bracket)...]))
        else { return nil }
        return DurationText.duration(seconds: Double(count) * Double(interval.nanoseconds) / 1e9)
    }
}
