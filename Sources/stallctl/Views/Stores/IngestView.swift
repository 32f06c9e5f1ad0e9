// The result of `ingest` as text and JSON.

internal import StallAnalysis
internal import StallModel
internal import StallArchive
internal import StallStore

enum IngestView {
    /// Limit for the terminal; JSON has them all.
    private static let shownLineFaults = 20

    /// One line per file that was not imported.
    static func errorLines(of summary: IngestSummary) -> [String] {
        summary.files.flatMap { file -> [String] in
            if case .skipped(.notReady) = file.outcome { return [] }
            if case .skipped(let error) = file.outcome {
                var line = error.description
                if case .notADatabase = error { line += " or JSON lines of 'stallctl export'" }
                return [line.printable]
            }
            let place = file.path == "-" ? "standard input" : file.path
            var lines = file.lineFaults.prefix(shownLineFaults).map { "\(place): \($0)".printable }
            let rest = file.lineFaultCount - lines.count
            if file.missingCount > 0 {
                let count = counted(file.missingCount, "report")
                lines.append("\(place): not deleted: \(count) of it are not in the store".printable)
            }
            if rest > 0 { lines.append("\(place): \(rest) more lines with errors".printable) }
            return lines
        }
    }

    static func sentence(for summary: IngestSummary, store: String) -> String {
        let imported = summary.files.count - summary.skippedCount - summary.notReadyCount
        let changed = summary.changedCount > 0 ? ", updated \(summary.changedCount)" : ""
        let skipped =
            summary.skippedCount > 0 ? "; skipped \(counted(summary.skippedCount, "file"))" : ""
        return
            "\(store.printable): imported \(counted(summary.addedCount, "new report"))\(changed) "
            + "from \(counted(imported, "file"))\(skipped)\(rest(summary))"
    }

    private static func rest(_ summary: IngestSummary) -> String {
        var text = ""
        if summary.lineFaultCount > 0 {
            text += "; rejected \(counted(summary.lineFaultCount, "line"))"
        }
        if summary.notReadyCount > 0 {
            text += "; \(counted(summary.notReadyCount, "file")) not ready yet"
        }
        if summary.quarantinedCount > 0 {
            text += "; \(counted(summary.quarantinedCount, "file")) in quarantine"
        }
        return summary.isCancelled ? text + "; stopped by a signal" : text
    }

    /// The summary as JSON.
    struct Row: Encodable {
        struct File: Encodable {
            var path: String
            var added: Int
            var changed: Int
            @Nullable var error: String?
            /// The rejected lines.
            var lineErrors: [String]
        }
        let schema = "stallctl.ingest/1"
        var store: String
        var added: Int
        var changed: Int
        var skipped: Int
        var linesLeftOut: Int
        var quarantined: Int
        var cancelled: Bool
        var files: [File]

        init(_ summary: IngestSummary, store: String) {
            self.store = store
            added = summary.addedCount
            changed = summary.changedCount
            skipped = summary.skippedCount
            linesLeftOut = summary.lineFaultCount
            quarantined = summary.quarantinedCount
            cancelled = summary.isCancelled
            files = summary.files.map { file in
                var row = File(
                    path: file.path, added: 0, changed: 0, error: nil,
                    lineErrors: file.lineFaults.map(\.description))
                switch file.outcome {
                case .taken(let added, let changed): (row.added, row.changed) = (added, changed)
                case .skipped(.notReady): break
                case .skipped(let error): row.error = error.description
                }
                return row
            }
        }
    }
}
