// What a run of ingest reports.

package import StallModel
package import StallStore

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
    /// Reports that it says it holds and that are not in the central store after all: then it is not to go.
    package var missingCount = 0
    /// Lines that were not taken: many of them, and how many there are.
    package var lineFaults: [LineFault] = []
    package var lineFaultCount = 0
    /// The file as it was when all of it was taken.
    var finishedAs: FileFacts?
    /// All of the file was taken, it is as it was then, and no process has it open: it may go. Checked each time: a job
    /// of many files is not over when this one is.
    package var isFinished: Bool {
        finishedAs != nil && finishedAs == FileFacts(path)
            // The last process that closes a store leaves one file.
            && !["-wal", "-shm", "-journal"].contains { FileFacts(path + $0) != nil }
    }

    /// How many line faults are kept: a file of a million faulty lines must not fill the memory.
    static let lineFaultLimit = 100_000
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
}

/// How far a run of `ingest` is.
package struct IngestProgress: Hashable, Sendable {
    package var filesDone: Int
    package var fileCount: Int
    package var reportsImported: Int
}

extension IngestFileResult {
    mutating func note(_ fault: LineFault) {
        lineFaultCount += 1
        if lineFaults.count < Self.lineFaultLimit { lineFaults.append(fault) }
    }
}
