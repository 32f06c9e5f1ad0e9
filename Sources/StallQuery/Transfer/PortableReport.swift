// A report in transfer between stores.

package import StallModel

/// The identity of a report: the store that it was first written to, and its number there. It stays the same in every
/// store, so that nothing is imported twice.
package struct ReportOrigin: Hashable, Sendable {
    package var store: UniqueID
    package var seq: Int64
    /// Increases with every change of the report.
    package var revision: Int64

    package init(store: UniqueID, seq: Int64, revision: Int64) {
        self.store = store
        self.seq = seq
        self.revision = revision
    }
}

/// A report with all that a store needs to import it.
package struct PortableReport: Hashable, Sendable {
    package var report: StallReport
    /// Nil for a report that was never in a store of this program.
    package var origin: ReportOrigin?
    /// The process's images with their load addresses.
    package var images: [Image]

    package init(report: StallReport, origin: ReportOrigin?, images: [Image]) {
        self.report = report
        self.origin = origin
        self.images = images
    }
}

/// An error in one line of a file of reports.
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

/// A sequence of reports and other rows, read one by one.
package protocol ReportFeed {
    /// The next row; nil at the end.
    ///
    /// - Throws: The error in one line; the next call continues after it.
    mutating func next() throws(LineFault) -> PortableRow?

    /// The number of the last line read, from 1.
    var lineNumber: Int { get }

    /// The number of bytes read.
    var byteCount: Int { get }

    /// Reading failed; no more reports follow.
    var hasFailed: Bool { get }

    /// The name of the format, if the file is another program's: it may have more than its reports.
    var otherFormat: String? { get }
}

extension ReportFeed {
    package var otherFormat: String? { nil }
}
