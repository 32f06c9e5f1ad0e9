// The reports of a text in another program's format, as `ingest` takes them.

package import StallModel
package import StallQuery

/// Reads reports of other programs.
package struct ForeignReports: ReportFeed {
    private var reader: any FormatReader
    /// The format of the text.
    package let format: ReportFormat
    private let options: ReadingOptions
    private let modified: UnixTime
    /// Whether samples of the wanted thread were read.
    private var hasWanted = false
    /// Whether samples of other threads were.
    private var hasOthers = false

    package var lineNumber: Int { reader.lines.number }
    package var byteCount: Int { reader.lines.byteCount }
    package var hasFailed: Bool { reader.lines.errno != 0 }
    package var otherFormat: String? { format.rawValue }

    /// Rows of a stream in whatever format: of our own lines, too, and of what is in no known format, which has a fault.
    ///
    /// - Parameter modified: When the stream's file was written: the start of reports that have no time.
    package static func feed(
        _ stream: ByteStream, _ options: ReadingOptions, modified: UnixTime
    ) -> any ReportFeed {
        if beginsAsLines(stream) { return ReportLines(stream) }
        let text = UTF16Text.converting(stream)
        guard let format = recognized(text) else { return ReportLines(text) }
        var options = options
        options.modified = modified
        let lines = TextLines(text, limit: format.reader.lineLimit)
        return ForeignReports(
            reader: format.reader.init(lines, options), format: format, options: options,
            modified: modified)
    }

    /// The format of a stream, of which nothing is taken; nil for one that is not known.
    package static func format(of stream: ByteStream) -> ReportFormat? {
        recognized(UTF16Text.converting(stream))
    }

    /// A log may have its first stall far from its beginning, a JSON text its stacks.
    private static func recognized(_ text: ByteStream) -> ReportFormat? {
        let size = ReportFormat.beginningSize
        let beginning = text.peek(size)
        if let format = ReportFormat(beginning: beginning) ?? StallInLog.format(of: text) {
            return format
        }
        guard beginning.count == size, TextBeginning(beginning.prefix(64)).isJSON else {
            return nil
        }
        return ReportFormat(document: text.peek(ReportFormat.documentSize))
    }

    /// A pipe's first line says it: there may be no second one for long.
    private static func beginsAsLines(_ stream: ByteStream) -> Bool {
        ReportLines.begins(
            stream.peek(ReportFormat.beginningSize) { ReportLines.begins($0) })
    }

    package mutating func next() throws(LineFault) -> PortableRow? {
        var next: ForeignReport?
        repeat {
            next = try reader.next()
            // The last report of a text that could not be read to its end is not whole.
            guard reader.lines.errno == 0 || next?.isWhole == true else {
                throw LineFault(line: lineNumber, reason: reader.lines.failure)
            }
        } while isOfOtherThread(next)
        guard let report = next else {
            guard let thread = options.thread, hasOthers, !hasWanted else { return nil }
            hasOthers = false
            throw LineFault(line: lineNumber, reason: "no samples are of a thread '\(thread)'")
        }
        do throws(NoStall) {
            return .report(try report.stall(options, format: format, modified: modified))
        } catch {
            throw LineFault(line: report.line, reason: "the report \(error.reason)")
        }
    }

    /// A profile's reports are of a thread each: those of other threads than the wanted one are left out.
    private mutating func isOfOtherThread(_ report: ForeignReport?) -> Bool {
        guard let report, report.kind == .samples, let thread = options.thread else { return false }
        let isOther = !report.threads.contains { $0.isCalled(thread) }
        if !isOther { hasWanted = true }
        if isOther { hasOthers = true }
        return isOther
    }
}
