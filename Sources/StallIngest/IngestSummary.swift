// The results of a run of ingest.

import StallModel
package import StallQuery
package import StallStore

/// How many reports were imported.
package struct ImportedCount: Hashable, Sendable {
    package var added = 0
    package var changed = 0

    var sum: Int { added + changed }
}

/// The outcome of one file that `ingest` was given or found.
package struct IngestFileResult: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// Reports that the central store did not have, and ones it had that have changed since.
        case taken(added: Int, changed: Int)
        /// The file could not be imported.
        case skipped(StoreError)
    }
    package var path: String
    package var outcome: Outcome
    /// The part of a large store that was imported when its import was interrupted, or a later part of it is damaged.
    /// The next run that can continues with it.
    package var partial: ImportedCount?
    /// It is as it was when all of it was imported, and was not opened.
    var isUnchanged = false
    /// Rows of a store that are not in the central store after all: then it is not deleted. Counted where it was to be.
    package var missing = MissingRows()
    /// Lines that were not taken: many of them, and how many there are.
    package var lineFaults: [LineFault] = []
    package var lineFaultCount = 0
    /// Lines of kinds or versions that this program does not know, by their schema: they were left out.
    package var unknownLines: [String: Int] = [:]
    /// Lines of reports of a time that was pruned, of which nothing says whether they were here: they were left out.
    package var leftOutCount = 0
    /// Lines that are not in the central store: then the file is not to go. Counted where it was to.
    package var missingLineCount = 0
    /// The name of the format, if the file is another program's: it may have more than its reports, and is never deleted.
    package var otherFormat: String?
    /// The file as it was when all of it was taken.
    var finishedAs: FileFacts?
    /// All of the file was taken, it is as it was then, and no process has it open: it may go. Checked each time: a job
    /// of many files is not over when this one is.
    package var isFinished: Bool {
        otherFormat == nil && finishedAs != nil && finishedAs == FileFacts(path)
            // The last process that closes a store leaves one file.
            && !["-wal", "-shm", "-journal"].contains { FileFacts(path + $0) != nil }
    }

    /// Rows and lines that keep the file from being deleted.
    package var missingCount: Int { missing.count + missingLineCount }

    var unknownLineCount: Int { unknownLines.values.reduce(0, +) }

    static func unchanged(_ path: String) -> IngestFileResult {
        var result = IngestFileResult(path: path, outcome: .taken(added: 0, changed: 0))
        result.isUnchanged = true
        return result
    }

    package var addedCount: Int {
        if case .taken(let added, _) = outcome { added } else { partial?.added ?? 0 }
    }
    package var changedCount: Int {
        if case .taken(_, let changed) = outcome { changed } else { partial?.changed ?? 0 }
    }

    /// How many line faults are kept: a file of a million faulty lines must not fill the memory.
    static let lineFaultLimit = 100_000
}

/// The results of one run of `ingest`.
package struct IngestSummary: Hashable, Sendable {
    /// In the order they were taken.
    package var files: [IngestFileResult]
    /// The job was cancelled before all files were examined.
    package var isCancelled = false
    /// Files that were not even tried.
    package var quarantinedCount = 0

    package var addedCount: Int { files.reduce(0) { $0 + $1.addedCount } }
    package var changedCount: Int { files.reduce(0) { $0 + $1.changedCount } }
    /// Files that were imported in part.
    package var partialCount: Int { files.count { $0.partial != nil } }
    /// Files that were not opened, because they are as they were.
    package var unchangedCount: Int { files.count { $0.isUnchanged } }
    package var skippedCount: Int {
        files.count { file in
            switch file.outcome {
            case .taken, .skipped(.notReady): false
            case .skipped: true
            }
        }
    }
    /// Stores that are being created at this moment: the next run takes them.
    package var notReadyCount: Int {
        files.count { file in if case .skipped(.notReady) = file.outcome { true } else { false } }
    }
    package var lineFaultCount: Int { files.reduce(0) { $0 + $1.lineFaultCount } }
    package var leftOutCount: Int { files.reduce(0) { $0 + $1.leftOutCount } }
    /// Lines of kinds or versions that this program does not know, by their schema.
    package var unknownLines: [String: Int] {
        files.reduce(into: [:]) { sums, file in sums.merge(file.unknownLines, uniquingKeysWith: +) }
    }
}

extension IngestSummary {
    /// The reports that were imported from files of one format of another program.
    package struct OtherFormat: Hashable, Sendable {
        package var name: String
        package var files = 0
        package var added = 0
        package var changed = 0
        package var faults = 0
    }

    /// In the order of their names.
    package var otherFormats: [OtherFormat] {
        var formats: [String: OtherFormat] = [:]
        for file in files {
            guard let name = file.otherFormat else { continue }
            formats[name, default: OtherFormat(name: name)].files += 1
            formats[name]?.added += file.addedCount
            formats[name]?.changed += file.changedCount
            formats[name]?.faults += file.lineFaultCount
        }
        return formats.values.sorted { $0.name < $1.name }
    }
}

/// How far a run of `ingest` is.
package struct IngestProgress: Hashable, Sendable {
    package var filesDone: Int
    package var fileCount: Int
    package var reportsImported: Int
}

extension IngestFileResult {
    mutating func noteUnknown(_ schema: String) { unknownLines.noteUnknown(schema) }

    mutating func note(_ fault: LineFault) {
        lineFaultCount += 1
        if lineFaults.count < Self.lineFaultLimit { lineFaults.append(fault) }
    }
}

extension [String: Int] {
    /// Counts a line of a schema that is not known. A file may name as many schemas as it has lines; beyond some they
    /// count as one.
    mutating func noteUnknown(_ schema: String) {
        let isListed = self[schema] != nil || count < 20
        self[isListed ? schema : "...", default: 0] += 1
    }
}
