// Diagnostic payloads of MetricKit, as apps send them to their servers: hangs, crashes and others, with call stacks in
// which no function has a name. Payloads one a line, in arrays, and call stacks without a payload.
//
// **Source:** Apple, MXDiagnosticPayload and MXCallStackTree; ChimeHQ/Meter.

internal import StallModel
internal import StallQuery

/// Reads diagnostic payloads.
struct MetricKitPayload: FormatReader {
    static var lineLimit: Int { JSONTexts.sizeLimit }

    private var texts: JSONTexts
    private var text: JSONLocatedText?
    /// The diagnostics of the text that are not read yet, the last first.
    private var diagnostics: [MetricKitDiagnostic] = []
    var lines: TextLines { texts.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) { texts = JSONTexts(lines) }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        func has(_ keys: [String]) -> Bool {
            keys.contains { beginning.text.contains("\"\($0)\"") }
        }
        return beginning.isJSON
            && (has(MetricKitDiagnostic.Topic.allCases.map(\.rawValue))
                || has(["callStacks", "callStackThreads"])
                    && has(["callStackRootFrames", "rootFrames"]))
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while diagnostics.isEmpty {
            guard let text = try texts.next() else { return nil }
            self.text = text
            diagnostics = Self.diagnostics(text.root).reversed()
            if diagnostics.isEmpty, !Self.isPayload(text.root) {
                var text = text
                throw LineFault(
                    line: text.line(of: text.root), reason: "is no payload of MetricKit")
            }
        }
        let diagnostic = diagnostics.removeLast()
        let line = text?.line(of: diagnostic.node) ?? lines.number
        guard let report = diagnostic.report(line: line) else {
            throw LineFault(
                line: line, reason: "the report has more than \(SampledTree.nodeLimit) frames")
        }
        if report.threads.isEmpty, !report.isOther {
            throw LineFault(line: line, reason: "the report has no call stacks")
        }
        return report
    }

    /// A payload may have no diagnostics.
    private static func isPayload(_ node: JSONNode) -> Bool {
        node["timeStampEnd"] != nil
            || node.isArray && node.elements.allSatisfy { $0["timeStampEnd"] != nil }
    }

    private static func diagnostics(_ root: JSONNode) -> [MetricKitDiagnostic] {
        // Arrays of arrays are not looked into.
        let payloads = root.isArray ? root.elements : [root]
        return payloads.flatMap { payload -> [MetricKitDiagnostic] in
            let found = payload.members.flatMap { key, value -> [MetricKitDiagnostic] in
                guard let topic = MetricKitDiagnostic.Topic(rawValue: key) else { return [] }
                return (value.isArray ? value.elements : [value]).map {
                    MetricKitDiagnostic(topic: topic, node: $0, payload: payload)
                }
            }
            guard found.isEmpty, MetricKitCallStacks.isTree(payload) else { return found }
            return [MetricKitDiagnostic(topic: .hang, node: payload, payload: payload)]
        }
    }
}

/// One diagnostic of a payload, or call stacks alone.
struct MetricKitDiagnostic {
    /// By the keys of a payload.
    enum Topic: String, CaseIterable {
        case hang = "hangDiagnostics"
        case crash = "crashDiagnostics"
        case cpu = "cpuExceptionDiagnostics"
        case disk = "diskWriteExceptionDiagnostics"
        case launch = "appLaunchDiagnostics"
    }

    var topic: Topic
    var node: JSONNode
    var payload: JSONNode

    private var metadata: JSONNode { node["diagnosticMetaData"] ?? node["metaData"] ?? node }

    /// Nil with too many frames.
    func report(line: Int) -> ForeignReport? {
        var report = ForeignReport(kind: kind, line: line)
        guard !report.isOther else { return report }
        report.app = metadata["bundleIdentifier"]?.text ?? ""
        report.version = AppleHeader.version(
            (metadata["appVersion"] ?? node["version"])?.word,
            build: (metadata["appBuildVersion"] ?? metadata["applicationBuildVersion"])?.word)
        report.takeMachine(
            os: metadata["osVersion"]?.text, device: metadata["deviceType"]?.text)
        report.pid = metadata["pid"]?.integer(Int32.self)
        // The end of the window that the payload is about: when the hang was is not known.
        report.start = (payload["timeStampEnd"] ?? node["timeStampEnd"])?.text.flatMap(Self.time)
        report.duration = Self.duration(metadata["hangDuration"] ?? node["hangDuration"])
        guard let stacks = MetricKitCallStacks(node, isCrash: topic == .crash) else { return nil }
        report.threads = stacks.threads
        report.stalledThread = stacks.attributed ?? (stacks.threads.isEmpty ? nil : 0)
        // A hang is one of the main thread, by Apple's definition.
        if topic == .hang, node.index != payload.index, let main = stacks.attributed {
            report.threads[main].isMain = true
        }
        if topic == .crash {
            let reason = metadata["terminationReason"]?.text ?? ""
            _ = report.judge(termination: reason, main: report.stalledThread)
        }
        return report
    }

    private var kind: ForeignReport.Kind {
        switch topic {
        case .hang: .hang
        case .crash: .crash
        case .cpu: .other("a report of used CPU time")
        case .disk: .other("a report of disk writes")
        case .launch: .other("a report of a slow launch")
        }
    }

    private static func time(_ text: String) -> UnixTime? {
        AppleHeader.time(text) ?? (try? ReportLine.time(text, "time"))
    }

    /// A text for people, or a measurement with its unit.
    private static func duration(_ node: JSONNode?) -> Duration? {
        guard let node else { return nil }
        if let text = node.text { return DurationText.duration(text) }
        guard let value = node["value"]?.double, let unit = node["unit"] else { return nil }
        let seconds =
            unit["converter"]?["coefficient"]?.double
            ?? (unit.text ?? unit["symbol"]?.text).flatMap {
                DurationText.seconds(of: $0.lowercased())
            }
        return seconds.flatMap { DurationText.duration(seconds: value * $0) }
    }
}

extension ForeignReport {
    var isOther: Bool {
        if case .other = kind { true } else { false }
    }
}
