// Reports of spindump, which macOS and iOS write of processes that hang or use too much, and their `.hang` files.
//
// **Source:** spindump(8).

internal import StallModel
internal import StallQuery

/// Reads reports of spindump.
struct SpindumpReport: FormatReader {
    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        func has(_ key: String) -> Bool { beginning.lines.contains { $0.hasPrefix(key) } }
        return has("Powerstats for:")
            || has("Report Version:") && has("Command:")
                && (has("Event:") || has("Heaviest stack for"))
    }

    /// Whether a report may begin with this line.
    private static func isFirst(_ line: String) -> Bool {
        line.hasPrefix("Date/Time:") || line.hasPrefix("Incident Identifier:")
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        var block: SpindumpBlock?
        while let line = lines.nextText() {
            if Self.isFirst(line), block?.hasBody == true {
                lines.putBack()
                break
            }
            if block == nil {
                // Lines around reports have no keys.
                guard line.contains(":") else { continue }
                block = SpindumpBlock(line: lines.number)
            }
            block?.take(line)
        }
        guard let block else { return nil }
        guard !block.isTooLarge else {
            throw LineFault(
                line: block.line, reason: "the report has more than \(SampledTree.nodeLimit) calls")
        }
        guard let report = block.report() else {
            throw LineFault(line: block.line, reason: "the report has no threads of its process")
        }
        return report
    }
}
