// The result of `ingest` as text and JSON.

internal import StallAnalysis
internal import StallIngest
internal import StallModel
import StallQuery
internal import StallStore

enum IngestView {
    /// Limit for the terminal; JSON has them all.
    private static let shownLineFaults = 20

    /// One line per file that was not imported.
    static func errorLines(of summary: IngestSummary) -> [String] {
        summary.files.flatMap { file -> [String] in
            if case .skipped(.notReady) = file.outcome { return [] }
            if case .skipped(let error) = file.outcome {
                var line = refusal(error)
                if let partial = file.partial {
                    let count = counted(partial.added + partial.changed, "report")
                    line += "; the \(count) before it are imported"
                }
                return [line.printable]
            }
            let place = file.path == "-" ? "standard input" : file.path
            var lines = file.lineFaults.prefix(shownLineFaults).map { "\(place): \($0)".printable }
            let rest = file.lineFaultCount - lines.count
            lines += keptReasons(of: file).map { "\(place): not deleted: \($0)".printable }
            if rest > 0 { lines.append("\(place): \(rest) more lines with errors".printable) }
            return lines
        }
    }

    /// Why a file is no source.
    static func refusal(ofFile path: String) -> String {
        refusal(.notADatabase(path: path, content: FileContent(path: path)))
    }

    private static func refusal(_ error: StoreError) -> String {
        guard case .notADatabase = error else { return error.description }
        return error.description + " or a file of reports that ingest reads"
    }

    /// Why a file that was to be deleted is still there.
    private static func keptReasons(of file: IngestFileResult) -> [String] {
        func reason(_ count: Int, _ noun: String, _ detail: String = "") -> String? {
            guard count > 0 else { return nil }
            let verb = count == 1 ? "is" : "are"
            return "\(counted(count, noun)) of it \(verb) not in the store\(detail)"
        }
        let missing = file.missing
        let kinds = StoredRowKind.allCases.compactMap { kind in
            missing.others[kind].map { "\(kind.rawValue): \($0)" }
        }
        let rolledUp = counted(missing.rolledUpCount, "stall")
        return [
            reason(missing.reportCount, "report"),
            reason(missing.otherCount, "other row", " (\(kinds.joined(separator: ", ")))"),
            missing.rolledUpCount == 0
                ? nil
                : "\(rolledUp) whose reports were pruned there \(missing.rolledUpCount == 1 ? "is" : "are") "
                    + "in its roll-ups only, which are not imported",
            reason(file.missingLineCount, "line"),
        ].compactMap(\.self)
    }

    /// The reports that came in each other program's format.
    static func formatLines(of summary: IngestSummary) -> [String] {
        let formats = summary.otherFormats
        // Then the sentence says the same.
        if formats.first?.files == summary.files.count { return [] }
        return formats.map { format in
            var text = "\(format.name): \(counted(format.added, "new report"))"
            if format.changed > 0 { text += ", updated \(format.changed)" }
            text += " from \(counted(format.files, "file"))"
            if format.faults > 0 { text += "; rejected \(counted(format.faults, "line"))" }
            return text
        }
    }

    /// - Parameter prunedCount: Reports that were deleted because of their age.
    static func sentence(
        for summary: IngestSummary, store: String, prunedCount: Int = 0
    ) -> String {
        let imported = summary.files.count - summary.skippedCount - summary.notReadyCount
        let changed = summary.changedCount > 0 ? ", updated \(summary.changedCount)" : ""
        let skipped =
            summary.skippedCount > 0 ? "; skipped \(counted(summary.skippedCount, "file"))" : ""
        return
            "\(store.printable): imported \(counted(summary.addedCount, "new report"))\(changed) "
            + "from \(counted(imported, "file"))\(skipped)\(rest(summary, prunedCount))"
    }

    private static func rest(_ summary: IngestSummary, _ prunedCount: Int) -> String {
        var text = ""
        if summary.partialCount > 0 {
            text += "; \(counted(summary.partialCount, "file")) imported in part"
        }
        if summary.lineFaultCount > 0 {
            text += "; rejected \(counted(summary.lineFaultCount, "line"))"
        }
        let unknown = summary.unknownLines
        if !unknown.isEmpty {
            let kinds = unknown.keys.sorted().joined(separator: ", ").printable
            let count = counted(unknown.values.reduce(0, +), "line")
            text += "; left out \(count) of unknown kinds (\(kinds))"
        }
        if summary.leftOutCount > 0 {
            text +=
                "; left out \(counted(summary.leftOutCount, "report")) of a time that was pruned"
        }
        if summary.notReadyCount > 0 {
            text += "; \(counted(summary.notReadyCount, "file")) not ready yet"
        }
        if summary.quarantinedCount > 0 {
            text += "; \(counted(summary.quarantinedCount, "file")) in quarantine"
        }
        if prunedCount > 0 { text += "; deleted \(counted(prunedCount, "old report"))" }
        return summary.isCancelled ? text + "; stopped by a signal" : text
    }

    /// The summary as JSON.
    struct Row: Encodable {
        struct File: Encodable {
            var path: String
            /// The format of another program's file.
            @Nullable var format: String?
            var added: Int
            var changed: Int
            /// Only a part of it was imported so far.
            var partial: Bool
            @Nullable var error: String?
            /// The rejected lines.
            var lineErrors: [String]
            /// Reports and lines that are not in the store, where the file was to be deleted or archived: it was not.
            var missing: Int
        }
        struct Format: Encodable {
            var format: String
            var files: Int
            var added: Int
            var changed: Int
            var linesLeftOut: Int
        }
        let schema = "stallctl.ingest/1"
        var store: String
        var added: Int
        var changed: Int
        var skipped: Int
        var linesLeftOut: Int
        /// Lines of kinds or versions that this program does not know, by their schema.
        var unknownLines: [String: Int]
        /// Lines of reports of a time that was pruned: nothing says whether they were here.
        var leftOutOfPrunedTime: Int
        var quarantined: Int
        var cancelled: Bool
        /// Files that were imported in part.
        var partial: Int
        /// Files that are as they were, and were not opened.
        var unchanged: Int
        /// Reports that were deleted because of their age.
        var pruned: Int
        /// Formats of other programs' files.
        var formats: [Format]
        var files: [File]

        init(_ summary: IngestSummary, store: String, prunedCount: Int = 0) {
            self.store = store
            added = summary.addedCount
            changed = summary.changedCount
            skipped = summary.skippedCount
            linesLeftOut = summary.lineFaultCount
            unknownLines = summary.unknownLines
            leftOutOfPrunedTime = summary.leftOutCount
            quarantined = summary.quarantinedCount
            cancelled = summary.isCancelled
            partial = summary.partialCount
            unchanged = summary.unchangedCount
            pruned = prunedCount
            formats = summary.otherFormats.map {
                Format(
                    format: $0.name, files: $0.files, added: $0.added, changed: $0.changed,
                    linesLeftOut: $0.faults)
            }
            files = summary.files.map { file in
                var row = File(
                    path: file.path, format: file.otherFormat, added: file.addedCount,
                    changed: file.changedCount,
                    partial: file.partial != nil, error: nil,
                    lineErrors: file.lineFaults.map(\.description),
                    missing: file.missingCount)
                switch file.outcome {
                case .taken, .skipped(.notReady): break
                case .skipped(let error): row.error = error.description
                }
                return row
            }
        }
    }
}
