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

    package var lineNumber: Int { reader.lines.number }
    package var byteCount: Int { reader.lines.byteCount }
    package var hasFailed: Bool { reader.lines.errno != 0 }
    package var isOfOtherProgram: Bool { true }

    /// Rows of a stream in whatever format: of our own lines, too, and of what is in no known format, which has a fault.
    ///
    /// - Parameter modified: When the stream's file was written: the start of reports that have no time.
    package static func feed(
        _ stream: ByteStream, _ options: ReadingOptions, modified: UnixTime
    ) -> any ReportFeed {
        if beginsAsLines(stream) { return ReportLines(stream) }
        let text = UTF16Text.converting(stream)
        guard let format = format(of: text) else { return ReportLines(text) }
        let lines = TextLines(text, limit: format.reader.lineLimit)
        return ForeignReports(
            reader: format.reader.init(lines, options), format: format, options: options,
            modified: modified)
    }

    /// The format of a stream, of which nothing is taken; nil for one that is not known.
    package static func format(of stream: ByteStream) -> ReportFormat? {
        let text = UTF16Text.converting(stream)
        return ReportFormat(beginning: text.peek(ReportFormat.beginningSize))
    }

    /// A pipe's first line says it: there may be no second one for long.
    private static func beginsAsLines(_ stream: ByteStream) -> Bool {
        ReportLines.begins(
            stream.peek(ReportFormat.beginningSize) { ReportLines.begins($0) })
    }

    package mutating func next() throws(LineFault) -> PortableRow? {
        let next = try reader.next()
        // The last report of a text that could not be read to its end is not whole.
        guard reader.lines.errno == 0 else {
            throw LineFault(line: lineNumber, reason: reader.lines.failure)
        }
        guard let report = next else { return nil }
        do throws(NoStall) {
            return .report(try report.stall(options, format: format, modified: modified))
        } catch {
            throw LineFault(line: report.line, reason: "the report \(error.reason)")
        }
    }
}
