// One report of KSCrash or Matrix: its type, its process and its threads.

internal import StallModel

struct KSCrashBody {
    private let node: JSONNode
    private let crash: JSONNode?
    private let images: [Image]
    private let sorted: SortedImages

    /// Nil for what is no report.
    init?(_ node: JSONNode) {
        guard
            node["report"]?.isObject == true || node["crash"]?.isObject == true
                || node["recrash_report"] != nil
        else { return nil }
        var node = node
        // The writer itself crashed: the report that it was writing has the threads.
        if node["crash"]?["threads"]?.elements.isEmpty != false,
            let inner = node["recrash_report"], inner.isObject
        {
            node = inner
        }
        self.node = node
        crash = node["crash"]
        images = (node["binary_images"]?.elements ?? []).compactMap(Self.image)
        sorted = SortedImages(images)
    }

    func report(line: Int) -> ForeignReport {
        let type = KSCrashType(node)
        var report = ForeignReport(kind: type.kind, line: line)
        guard !report.isOther else { return report }
        let (system, header) = (node["system"], node["report"])
        // The process' name is cut off at 16 bytes.
        report.app =
            system?["CFBundleExecutable"]?.text ?? header?["process_name"]?.text
            ?? system?["process_name"]?.text ?? ""
        report.version = AppleHeader.version(
            system?["CFBundleShortVersionString"]?.word, build: system?["CFBundleVersion"]?.word)
        report.pid = system?["process_id"]?.integer(Int32.self)
        report.start = header?["timestamp"].flatMap(Self.time)
        report.takeMachine(
            os: system?["system_name"]?.text.map {
                "\($0) \(system?["system_version"]?.word ?? "")"
            },
            device: system?["machine"]?.text)
        report.images = images
        let path = system?["CFBundleExecutablePath"]?.text
        report.buildID = images.first { $0.path == path || $0.name == report.app }?.buildID
        let threads = crash?["threads"]?.elements ?? []
        report.threads = threads.enumerated().map(thread)
        let main = report.threads.firstIndex { $0.isMain }
        if report.kind == .hang {
            report.stalledThread = main
            report.isAtLeast = type.isInterrupted
            report.duration = blockTime
        } else {
            report.stalledThread = threads.firstIndex { $0["crashed"]?.isTrue == true } ?? main
        }
        return report
    }

    /// Seconds since 1970, or a text.
    private static func time(_ node: JSONNode) -> UnixTime? {
        if let text = node.text, let time = try? ReportLine.time(text, "time") { return time }
        guard let seconds = node.double, (0...1e11).contains(seconds) else { return nil }
        return UnixTime(microseconds: Int64((seconds * 1e6).rounded()))
    }

    /// Matrix measures in microseconds.
    private var blockTime: Duration? {
        let user = node["user"]
        let found = user?["blockTime"] ?? user?.members.lazy.compactMap { $1["blockTime"] }.first
        return found?.double.flatMap { DurationText.duration(seconds: $0 / 1e6) }
    }

    private static func image(_ node: JSONNode) -> Image? {
        guard let path = node["name"]?.text, let start = node["image_addr"]?.integer(UInt64.self),
            let size = node["image_size"]?.integer(UInt64.self), start > 0, size > 0
        else { return nil }
        let (end, isWrong) = start.addingReportingOverflow(size)
        guard !isWrong else { return nil }
        return Image(
            path: path, buildID: node["uuid"]?.text.flatMap(BuildID.init(uuid:)),
            loadAddress: start, endAddress: end)
    }

    // MARK: Threads

    private func thread(_ number: Int, _ node: JSONNode) -> ForeignThread {
        let index = node["index"]?.integer(Int32.self) ?? Int32(clamping: number)
        let queue = node["dispatch_queue"]?.text
        var thread = ForeignThread(
            number: index, name: node["name"]?.text ?? queue,
            isMain: index == 0 || queue == "com.apple.main-thread")
        let contents = node["backtrace"]?["contents"]?.elements ?? []
        var sample = ForeignSample()
        sample.frames = contents.prefix(SampledTree.frameLimit).compactMap(frame)
        if !sample.frames.isEmpty { sample.frames[0].kind = .interrupted }
        sample.isTruncated =
            contents.count > SampledTree.frameLimit
            || (node["backtrace"]?["skipped"]?.integer(Int64.self) ?? 0) > 0
        if !sample.frames.isEmpty { thread.samples = [sample] }
        return thread
    }

    private func frame(_ node: JSONNode) -> ForeignFrame? {
        let name = node["symbol_name"]?.text
        let function = name == "<redacted>" || name?.isEmpty == true ? nil : name
        guard let address = node["instruction_addr"]?.integer(UInt64.self) else {
            guard let function else { return nil }
            var frame = ForeignFrame()
            frame.function = function
            frame.image = node["object_name"]?.text
            return frame
        }
        var frame = ForeignFrame(address: address, in: sorted, kind: .returnAddress)
        if frame.image == nil {
            frame.image = node["object_name"]?.text
            if let base = node["object_addr"]?.integer(UInt64.self), base > 0, base <= address {
                frame.offset = address - base
            }
        }
        frame.function = function
        return frame
    }
}

/// The reason for a report, by the writer's number or word.
struct KSCrashType {
    let kind: ForeignReport.Kind
    /// The process ended while it was stuck.
    let isInterrupted: Bool

    init(_ node: JSONNode) {
        let error = node["crash"]?["error"]
        let number =
            (node["dump_type"] ?? node["report"]?["dump_type"])?.integer(Int.self)
            ?? error?["user_reported"]?["name"]?.integer(Int.self)
            ?? node["user"]?.members.lazy.compactMap { $1["DumpType"]?.integer(Int.self) }.first
        isInterrupted = number == 2010 || error?["type"]?.text == "deadlock"
        kind =
            switch number {
            case 2001, 2002, 2003, 2007, 2009, 2010: .hang
            case 2011: .other("a report of used power")
            case 2013: .other("a report of disk writes")
            case 2014: .other("a report of dropped frames")
            default:
                if error?["type"]?.text == "deadlock" {
                    .hang
                } else if node["stack_string"] != nil, node["crash"]?["threads"] == nil {
                    .other("a profile without threads")
                } else {
                    .crash
                }
            }
    }
}
