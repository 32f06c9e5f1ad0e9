// Events of Sentry as JSON: one, one a line, an array, or an envelope, whose headers are passed over. Hangs of apps and
// ANRs are stalls; an exception that nothing handled is a crash.
//
// **Source:** develop.sentry.dev, "Event Payloads", "Exception", "Stack Trace", "Debug Meta", "Envelopes".

internal import StallModel
internal import StallQuery

/// Reads events of Sentry's SDKs.
struct SentryEvent: FormatReader {
    static var lineLimit: Int { JSONTexts.sizeLimit }

    private var texts: JSONTexts
    private var text: JSONLocatedText?
    /// The events of the text that are not read yet, the last first.
    private var events: [JSONNode] = []
    var lines: TextLines { texts.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) { texts = JSONTexts(lines) }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        guard beginning.isJSON else { return false }
        func has(_ key: String) -> Bool { beginning.text.contains("\"\(key)\"") }
        return has("event_id") && (has("exception") || has("threads")) && has("values")
            && (has("stacktrace") || has("mechanism"))
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while true {
            if let node = events.popLast() {
                // A header of an envelope.
                if node["exception"] == nil, node["threads"] == nil, node["platform"] == nil {
                    continue
                }
                let line = text?.line(of: node) ?? lines.number
                let report = SentryBody(node).report(line: line)
                if report.threads.isEmpty, !report.isOther {
                    throw LineFault(line: line, reason: "the report has no stack traces")
                }
                return report
            }
            guard let text = try texts.next() else { return nil }
            self.text = text
            events = text.root.isArray ? text.root.elements.reversed() : [text.root]
        }
    }
}

/// One event.
private struct SentryBody {
    private let node: JSONNode
    /// The last one is the outermost: the others are its causes.
    private let exception: JSONNode?
    private let images: [Image]

    init(_ node: JSONNode) {
        self.node = node
        exception = Self.values(node["exception"]).last
        images = (node["debug_meta"]?["images"]?.elements ?? []).compactMap(Self.image)
    }

    /// Of an object with `values`, or an array.
    private static func values(_ node: JSONNode?) -> [JSONNode] {
        (node?["values"] ?? node)?.elements ?? []
    }

    func report(line: Int) -> ForeignReport {
        var report = ForeignReport(kind: kind, line: line)
        guard !report.isOther else { return report }
        // SDKs write it with and without dashes, in either case.
        report.identifier = node["event_id"]?.text?.lowercased().filter { $0 != "-" }
        let (app, release) = (node["contexts"]?["app"], release)
        report.app = app?["app_identifier"]?.text ?? release.name ?? app?["app_name"]?.text ?? ""
        report.version = AppleHeader.version(
            app?["app_version"]?.word ?? release.version,
            build: app?["app_build"]?.word ?? release.build)
        report.host = node["server_name"]?.text ?? ""
        let (system, device) = (node["contexts"]?["os"], node["contexts"]?["device"])
        report.takeMachine(
            os: system?["name"]?.text.map { "\($0) \(system?["version"]?.word ?? "")" },
            device: device?["model"]?.text)
        if report.kind == .hang { (report.duration, report.isAtLeast) = duration }
        report.start = node["timestamp"].flatMap(Self.time)?.before(report.duration)
        report.images = images
        addThreads(to: &report)
        return report
    }

    private var kind: ForeignReport.Kind {
        guard let exception else { return .other("an event without an exception") }
        let type = exception["type"]?.text ?? ""
        let mechanism = exception["mechanism"]?["type"]?.text ?? ""
        if ["AppHang", "ANR", "mx_hang_diagnostic"].contains(mechanism)
            || type.contains("App Hang") || Self.hangTypes.contains(type)
        {
            return .hang
        }
        return exception["mechanism"]?["handled"]?.isFalse == true
            ? .crash : .other("an error that was handled")
    }

    private static let hangTypes = [
        "ApplicationNotResponding", "Application Not Responding", "MXHangDiagnostic",
    ]

    /// `NAME@VERSION+BUILD`.
    private var release: (name: String?, version: String?, build: String?) {
        guard let text = node["release"]?.text else { return (nil, nil, node["dist"]?.word) }
        let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return (nil, text, nil) }
        let versions = parts[1].split(separator: "+", maxSplits: 1)
        return (
            String(parts[0]), versions.first.map(String.init),
            versions.count == 2 ? String(versions[1]) : nil
        )
    }

    /// `App hanging for at least 2000 ms.`, `App hanging between 2.0 and 2.4 seconds.`, `App hang detected: 3.2 sec` or
    /// `MXHangDiagnostic hangDuration:6.6 sec`.
    private var duration: (Duration?, isAtLeast: Bool) {
        guard let text = exception?["value"]?.text else { return (nil, false) }
        if let found = text.firstRange(of: "for at least ") {
            return (DurationText.duration(String(text[found.upperBound...])), true)
        }
        if let found = text.firstRange(of: " between "),
            let and = text[found.upperBound...].firstRange(of: " and ")
        {
            // The shorter of the two has the unit of the longer.
            let unit = text[and.upperBound...].drop { !$0.isLetter }
            return (
                DurationText.duration("\(text[found.upperBound..<and.lowerBound]) \(unit)"), false
            )
        }
        let found = text.firstRange(of: "detected: ") ?? text.firstRange(of: "hangDuration:")
        return (found.flatMap { DurationText.duration(String(text[$0.upperBound...])) }, false)
    }

    /// Seconds since 1970, or a text, which is in UTC where it has no time zone.
    private static func time(_ node: JSONNode) -> UnixTime? {
        for text in node.text.map({ [$0, $0 + "Z"] }) ?? [] {
            if let time = try? ReportLine.time(text, "time") { return time }
        }
        guard let seconds = node.double, (0...1e11).contains(seconds) else { return nil }
        return UnixTime(microseconds: Int64((seconds * 1e6).rounded()))
    }

    private static func image(_ node: JSONNode) -> Image? {
        guard let path = node["code_file"]?.text,
            let start = node["image_addr"]?.integer(UInt64.self),
            let size = node["image_size"]?.integer(UInt64.self), start > 0, size > 0
        else { return nil }
        let (end, isWrong) = start.addingReportingOverflow(size)
        guard !isWrong else { return nil }
        // The debug ID of ELF is a part of its build ID.
        let id =
            node["type"]?.text == "elf"
            ? node["code_id"]?.text.flatMap { BuildID(hexadecimal: $0) }
            : node["debug_id"]?.text.flatMap(BuildID.init(uuid:))
        return Image(path: path, buildID: id, loadAddress: start, endAddress: end)
    }

    // MARK: Threads

    private func addThreads(to report: inout ForeignReport) {
        let sorted = SortedImages(images)
        let stuck = exception?["thread_id"]?.integer(Int64.self)
        for (place, node) in Self.values(node["threads"]).enumerated() {
            let (id, name) = (node["id"]?.integer(Int64.self), node["name"]?.text)
            // Those of Darwin may be addresses.
            var thread = ForeignThread(
                number: id.flatMap(Int32.init(exactly:)) ?? Int32(truncatingIfNeeded: place),
                name: name?.isEmpty == false ? name : nil, isMain: node["main"]?.isTrue == true)
            if let sample = Self.sample(node["stacktrace"], sorted) { thread.samples = [sample] }
            if stuck != nil ? id == stuck : node["crashed"]?.isTrue == true,
                report.stalledThread == nil
            {
                report.stalledThread = report.threads.count
            }
            report.threads.append(thread)
        }
        report.stalledThread = report.stalledThread ?? report.threads.firstIndex { $0.isMain }
        // The exception has the stack of its thread, which then has none of its own.
        guard let sample = Self.sample(exception?["stacktrace"], sorted) else { return }
        if let place = report.stalledThread {
            // Another stack of a thread that the event does not call its own is of another moment.
            if stuck == nil || report.threads[place].samples.isEmpty {
                report.threads[place].samples = [sample]
            }
        } else {
            report.stalledThread = report.threads.count
            let number = stuck.flatMap(Int32.init(exactly:)) ?? 0
            report.threads.append(ForeignThread(number: number, samples: [sample]))
        }
    }

    private static func sample(_ node: JSONNode?, _ images: SortedImages) -> ForeignSample? {
        guard let frames = node?["frames"]?.elements, !frames.isEmpty else { return nil }
        // The outermost is first.
        let kept = frames.suffix(SampledTree.frameLimit).reversed()
        var sample = ForeignSample(
            frames: kept.enumerated().map { frame($1, images, isInnermost: $0 == 0) })
        sample.isTruncated =
            frames.count > SampledTree.frameLimit || node?["frames_omitted"] != nil
        return sample
    }

    private static func frame(
        _ node: JSONNode, _ images: SortedImages, isInnermost: Bool
    ) -> ForeignFrame {
        var frame = ForeignFrame()
        let name = node["raw_function"]?.text ?? node["function"]?.text
        if let address = node["instruction_addr"]?.integer(UInt64.self) {
            frame = ForeignFrame(address: address, in: images, kind: .returnAddress)
            let base = node["image_addr"]?.integer(UInt64.self) ?? 0
            if frame.image == nil, base <= address {
                frame.image = node["package"]?.text
                frame.offset = address - base
                // Without a base the address is of one run only, and a name is better.
                if base == 0, frame.image != nil, name != nil { frame.offset = nil }
            }
        } else {
            frame.image = node["package"]?.text
        }
        frame.kind = isInnermost ? .interrupted : .returnAddress
        frame.function = name
        // Code without addresses has modules: classes of Java, files of Python.
        if let name, node["instruction_addr"] == nil, let module = node["module"]?.text,
            !module.isEmpty
        {
            frame.function = "\(module).\(name)"
        }
        frame.file = node["abs_path"]?.text ?? node["filename"]?.text
        if frame.file != nil, let line = node["lineno"]?.integer(Int32.self), line > 0 {
            frame.line = Int(line)
        }
        return frame
    }
}
