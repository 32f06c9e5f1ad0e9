// A report on its way between stores, outside of a store.

/// Which report it is: the store that it was first written to, and its number there. The same
/// wherever it goes, so that nothing is taken twice.
package struct ReportOrigin: Hashable, Sendable {
    package var store: UniqueID
    package var seq: Int64
    /// Grows whenever the report changes.
    package var revision: Int64

    package init(store: UniqueID, seq: Int64, revision: Int64) {
        self.store = store
        self.seq = seq
        self.revision = revision
    }
}

/// A report with all that a store needs to know of it.
package struct PortableReport: Hashable, Sendable {
    package var report: StallReport
    /// Nil for a report that no store of ours ever held.
    package var origin: ReportOrigin?
    /// Where the process's loader had put the images.
    package var images: [Image]

    package init(report: StallReport, origin: ReportOrigin?, images: [Image]) {
        self.report = report
        self.origin = origin
        self.images = images
    }
}

/// What is wrong with one line of a file of reports.
package struct LineFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// From 1.
    package var line: Int
    package var reason: String

    package init(line: Int, reason: String) {
        self.line = line
        self.reason = reason
    }

    package var description: String { "line \(line): \(reason)" }
}

/// Reports that come one by one.
package protocol ReportFeed {
    /// The next report; nil at the end.
    ///
    /// - Throws: What is wrong with one line; the next call goes on behind it.
    mutating func next() throws(LineFault) -> PortableReport?

    /// The number of the line that was read last, from 1.
    var lineNumber: Int { get }

    /// How many bytes were read.
    var byteCount: Int { get }

    /// Reading itself failed, so that nothing more will come.
    var hasFailed: Bool { get }
}
