// What a run of ingest tells of itself.

package import StallModel

/// What became of one file that `ingest` was given or found.
package struct IngestFileResult: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// Reports that the central store did not have, and ones it had that have changed since.
        case taken(added: Int, changed: Int)
        /// Nothing of the file was taken over.
        case skipped(StoreError)
    }
    package var path: String
    package var outcome: Outcome
    /// Lines that were not taken: the first few of them, and how many there are.
    package var lineFaults: [LineFault] = []
    package var lineFaultCount = 0
    /// The file as it was when all of it was taken.
    var finishedAs: FileFacts?
    /// All of the file was taken, it is as it was then, and nobody has it open: it may go. Asked anew each time: a job of
    /// many files is not over when this one is.
    package var isFinished: Bool {
        finishedAs != nil && finishedAs == FileFacts(path)
            // The last process that closes a store leaves one file.
            && !["-wal", "-shm", "-journal"].contains { FileFacts(path + $0) != nil }
    }

    /// How many line faults are told of.
    package static let lineFaultLimit = 20
}

/// What one run of `ingest` did.
package struct IngestSummary: Hashable, Sendable {
    /// In the order they were taken.
    package var files: [IngestFileResult]
    /// It was told to stop before all files were looked at.
    package var isCancelled = false
    /// Files that were not even tried.
    package var quarantinedCount = 0

    package var addedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(let added, _) = file.outcome { sum + added } else { sum }
        }
    }
    package var changedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(_, let changed) = file.outcome { sum + changed } else { sum }
        }
    }
    package var skippedCount: Int {
        files.count { file in if case .skipped = file.outcome { true } else { false } }
    }
    package var lineFaultCount: Int { files.reduce(0) { $0 + $1.lineFaultCount } }
}

/// How far a run of `ingest` is.
package struct IngestProgress: Hashable, Sendable {
    package var filesDone: Int
    package var fileCount: Int
    package var reportsTaken: Int
}

extension IngestFileResult {
    mutating func note(_ fault: LineFault) {
        lineFaultCount += 1
        if lineFaults.count < Self.lineFaultLimit { lineFaults.append(fault) }
    }
}
