// Apple's `.ips` files: a line of metadata as JSON, then the report itself as JSON or as text; several of them in one
// file.
//
// **Source:** Apple, "Interpreting the JSON format of a crash report".

internal import StallModel
internal import StallQuery

/// Reads `.ips` documents.
struct IPSReport: FormatReader {
    static var lineLimit: Int { JSONTexts.sizeLimit }

    private var texts: JSONTexts
    var lines: TextLines { texts.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) {
        texts = JSONTexts(lines, isFirst: Self.isMetadata)
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.isJSON
            && beginning.lines.first { !$0.allSatisfy(\.isWhitespace) }.map {
                isMetadata(Array($0.utf8))
            } == true
    }

    /// Whether a line is of metadata. Bodies have no such key at the beginning of a line.
    private static func isMetadata(_ line: [UInt8]) -> Bool {
        guard line.first == UInt8(ascii: "{") else { return false }
        let text = String(decoding: line.prefix(1 << 14), as: UTF8.self)
        return text.contains("\"bug_type\"")
            && ["timestamp", "app_name", "incident_id"].contains { text.contains("\"\($0)\"") }
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        guard let metadata = try texts.next() else { return nil }
        let line = metadata.root
        let first = lines.number
        guard let type = line["bug_type"]?.word else {
            try skipBody()
            throw LineFault(line: first, reason: "the report has no bug_type")
        }
        guard let body = firstOfBody() else {
            throw LineFault(line: first, reason: "the report has no body behind its metadata")
        }
        var report: ForeignReport
        if body == UInt8(ascii: "{") {
            guard let document = try texts.next() else { return nil }
            report =
                type == "309"
                ? IPSBody(document.root, metadata: line).report(line: first)
                : ForeignReport(kind: .other(Self.noun(of: type)), line: first)
            if type == "309", report.threads.isEmpty {
                throw LineFault(line: first, reason: "the report has no threads")
            }
        } else {
            report = textReport(type, line: first)
        }
        Self.complete(&report, line)
        return report
    }

    private static func complete(_ report: inout ForeignReport, _ metadata: JSONNode) {
        report.identifier = metadata["incident_id"]?.text
        if report.app.isEmpty { report.app = metadata["app_name"]?.text ?? "" }
        let version = AppleHeader.version(
            metadata["app_version"]?.word, build: metadata["build_version"]?.word)
        // A text body of an old system has them in another order.
        if !version.isEmpty { report.version = version }
        report.takeMachine(os: metadata["os_version"]?.text, device: report.device)
        if report.start == nil {
            report.start = metadata["timestamp"]?.text.flatMap(AppleHeader.time)
        }
        if report.buildID == nil {
            report.buildID = metadata["slice_uuid"]?.text.flatMap(BuildID.init(uuid:))
        }
    }

    /// - Returns: Of the line that is read next, the first byte that is no space; nil without a body.
    private mutating func firstOfBody() -> UInt8? {
        while let line = texts.nextLine() {
            guard let byte = line.first(where: { $0 != 0x20 && $0 != 0x09 }) else { continue }
            texts.putBack()
            return Self.isMetadata(line) ? nil : byte
        }
        return nil
    }

    private mutating func skipBody() throws(LineFault) {
        guard let byte = firstOfBody() else { return }
        if byte == UInt8(ascii: "{") { _ = try texts.next() } else { _ = textReport("", line: 0) }
    }

    /// Reads a body up to the next line of metadata: a crash report as text, or the samples of a hang.
    private mutating func textReport(_ type: String, line: Int) -> ForeignReport {
        var crash = AppleCrashBlock(line: line)
        var samples = SpindumpBlock(line: line)
        while let bytes = texts.nextLine() {
            if Self.isMetadata(bytes) {
                texts.putBack()
                break
            }
            let text = String(decoding: bytes, as: UTF8.self)
            if type == "109" { crash.take(text) } else { samples.take(text) }
        }
        if type == "109" { return crash.report() }
        if let report = samples.report(), samples.hasEvent { return report }
        return ForeignReport(kind: .other(Self.noun(of: type)), line: line)
    }

    /// A type of report that is none of a crash, as a noun.
    private static func noun(of type: String) -> String {
        switch type {
        case "298": "a jetsam report"
        case "151", "210": "a report of a kernel panic"
        case "226", "313": "a telemetry report"
        case "145", "202", "206": "a report of used resources"
        case "288": "a stackshot"
        default: "a report of type \(type.prefix(20))"
        }
    }
}
