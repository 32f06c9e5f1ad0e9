// What `ingest` did, in words and as data.

internal import StallStore

enum IngestView {
    /// One line for each file that was not taken.
    static func errorLines(of summary: IngestSummary) -> [String] {
        summary.files.compactMap { file in
            guard case .skipped(let error) = file.outcome else { return nil }
            return error.description.printable
        }
    }

    static func sentence(for summary: IngestSummary, store: String) -> String {
        let taken = summary.files.count - summary.skippedCount
        let changed = summary.changedCount > 0 ? ", brought \(summary.changedCount) up to date" : ""
        let skipped =
            summary.skippedCount > 0 ? "; skipped \(counted(summary.skippedCount, "file"))" : ""
        return "\(store.printable): took \(counted(summary.addedCount, "new report"))\(changed) "
            + "from \(counted(taken, "file"))\(skipped)"
    }

    /// The summary as data.
    struct Row: Encodable {
        struct File: Encodable {
            var path: String
            var added: Int
            var changed: Int
            @Nullable var error: String?
        }
        let schema = "stallctl.ingest/1"
        var store: String
        var added: Int
        var changed: Int
        var skipped: Int
        var files: [File]

        init(_ summary: IngestSummary, store: String) {
            self.store = store
            added = summary.addedCount
            changed = summary.changedCount
            skipped = summary.skippedCount
            files = summary.files.map { file in
                switch file.outcome {
                case .taken(let added, let changed):
                    File(path: file.path, added: added, changed: changed, error: nil)
                case .skipped(let error):
                    File(path: file.path, added: 0, changed: 0, error: error.description)
                }
            }
        }
    }
}
