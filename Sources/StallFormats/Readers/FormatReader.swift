// The interface of the readers, one for each format.

internal import StallModel
internal import StallQuery

/// Reads the reports of one format.
protocol FormatReader {
    /// The longest line, in bytes; a document is one line where it has no ends of lines.
    static var lineLimit: Int { get }

    /// Whether a text is in this format: by what only this one has.
    static func recognizes(_ beginning: TextBeginning) -> Bool

    /// - Parameter lines: From the beginning of the text.
    init(_ lines: TextLines, _ options: ReadingOptions)

    /// The lines, as far as they were read.
    var lines: TextLines { get }

    /// The next report; nil at the end.
    ///
    /// - Throws: The fault of a report; the next call continues behind it.
    mutating func next() throws(LineFault) -> ForeignReport?
}

extension FormatReader {
    static var lineLimit: Int { 1 << 20 }
}

/// A user's knowledge of reports that lack it.
package struct ReadingOptions: Sendable {
    /// The name of the app, in place of the reports'.
    package var app: String?
    /// Its version, in place of the reports'.
    package var version: String?
    /// The duration of stalls whose reports have none.
    package var duration: Duration?
    /// The time between two samples of profiles that only count them.
    package var sampleInterval: Duration?
    /// The event of `perf script` whose samples are taken; nil for the first one in a text.
    package var event: String?
    /// The number or the name of the thread that was stuck; `main` is the main thread's.
    package var thread: String?
    /// Profiles and crashes are stalls, too.
    package var takesAllAsStalls = false
    /// The readable name of a mangled function.
    package var demangle: @Sendable (String) -> String = { $0 }
    /// When the text was written, for times without a year; nil if unknown.
    var modified: UnixTime?

    package init() {}
}
