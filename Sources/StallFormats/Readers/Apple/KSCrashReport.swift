// Reports of KSCrash as JSON, and those of Tencent's Matrix, which is built on it and reports stalls ("lag") and
// others.
//
// **Source:** kstenerud/KSCrash, KSCrashReportFields.h; Tencent/matrix, WCBlockTypeDef.h.

internal import StallModel
internal import StallQuery

/// Reads reports of KSCrash and Matrix.
struct KSCrashReport: FormatReader {
    static var lineLimit: Int { JSONTexts.sizeLimit }

    private var texts: JSONTexts
    private var text: JSONLocatedText?
    /// The reports of the text that are not read yet, the last first.
    private var reports: [JSONNode] = []
    var lines: TextLines { texts.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) { texts = JSONTexts(lines) }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        guard beginning.isJSON else { return false }
        func has(_ key: String) -> Bool { beginning.hasKey(key) }
        // Its binaries may be all that the beginning has.
        return has("binary_images") && has("image_addr")
            || has("report") && (has("stack_string") || has("recrash_report"))
            || has("report") && has("crash") && (has("threads") || has("error"))
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while reports.isEmpty {
            guard let text = try texts.next() else { return nil }
            self.text = text
            reports = text.root.isArray ? text.root.elements.reversed() : [text.root]
        }
        let node = reports.removeLast()
        let line = text?.line(of: node) ?? lines.number
        guard let body = KSCrashBody(node) else {
            throw LineFault(line: line, reason: "is no report of KSCrash")
        }
        let report = body.report(line: line)
        if report.threads.isEmpty, !report.isOther {
            throw LineFault(line: line, reason: "the report has no threads")
        }
        return report
    }
}
