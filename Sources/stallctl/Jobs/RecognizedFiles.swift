// The files of a directory that have no reports: with --watch, each is looked into once, not every few seconds.

internal import StallModel
internal import StallStore

/// Whether files have another program's reports.
///
/// **Thread safety:** one thread.
final class RecognizedFiles {
    /// As they were when they were found to have none.
    private var others: [String: FileFacts] = [:]
    private static let limit = 100_000

    func hasReports(_ path: String, now: UnixTime = .now()) -> Bool {
        let facts = FileFacts(path)
        if let facts, others[path] == facts { return false }
        others[path] = nil
        if ReportFiles.format(ofFile: path) != nil { return true }
        // A file that changes now may change again without a trace: its times are those of the kernel's ticks.
        if let facts, others.count < Self.limit,
            facts.modifiedNanoseconds / 1000 < now.microseconds - 2_000_000
        {
            others[path] = facts
        }
        return false
    }
}
